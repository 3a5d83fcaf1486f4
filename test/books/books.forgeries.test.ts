import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { compare, Verifier } from '@scrip/verifier';
import fc from 'fast-check';
import { checkpointOf, KINDS, signCheckpoint, signKeys, verifierKey } from '../../src/books/checkpoint.ts';
import type { Published } from '../../src/books/publish.ts';
import { findProblem } from '../../src/cli/witness.ts';
import { signerOf } from '../../src/keyring/ring.ts';
import { openLedger, sell, spend } from '../support/books.ts';
import {
  balance,
  type Day,
  type Forged,
  readProof,
  textOfClosing,
  writeProof,
} from '../support/forgeries.ts';
import { PROGRAMS, run } from '../support/proof-programs.ts';
import { exportedText } from '../support/reports.ts';
import { ofFile } from '../support/scope.ts';

/**
 * Forged proofs of seven kinds, and honest ones. FORGERIES is the number of each kind. A forger leaves the
 * hashes as they were, makes them right, or makes the totals right too.
 */

const RUNS = Number(process.env['FORGERIES'] ?? 30);
/** The verifier in Python says the same of one proof in so many. */
const PYTHON = 8;
const SIGNER = signerOf(Buffer.alloc(32, 7));

type Pick = (below: number) => number;
const rowsOf = ({ days }: Forged) => days.flatMap((day) => day.slices);

/** Takes a row that a forger chose. */
function choose(forged: Forged, pick: Pick) {
  const slices = rowsOf(forged).filter(({ rows }) => rows.length > 0);
  const slice = slices[pick(slices.length)] ?? assert.fail();
  const at = pick(slice.rows.length);
  return { slice, at, row: slice.rows[at] ?? '' };
}

/** Adds a row to a day that is not its own, or does nothing if there is no other. */
function addElsewhere({ days }: Forged, row: string, from: object, pick: Pick): void {
  const others = days.filter(({ slices }) => slices.length > 0 && !slices.includes(from as never));
  const slice = others[pick(others.length)]?.slices.at(pick(2) - 1) ?? assert.fail();
  slice.rows.splice(pick(slice.rows.length + 1), 0, row);
}

const alter = (row: string, at: number, change: (value: string) => string) =>
  row
    .split('|')
    .map((value, index) => (index === at ? change(value) : value))
    .join('|');

const FORGERIES: Record<string, (forged: Forged, pick: Pick) => void> = {
  altered(forged, pick) {
    const { slice, at, row } = choose(forged, pick);
    const column = [4, 9, 12][pick(3)] ?? 4;
    slice.rows[at] = alter(row, column, (value) =>
      column === 12 ? `${value}x` : String(Number(value) + 1 + pick(9)),
    );
  },
  dropped(forged, pick) {
    const { slice, at } = choose(forged, pick);
    slice.rows.splice(at, 1);
  },
  added(forged, pick) {
    const { slice, at, row } = choose(forged, pick);
    const id = alter(row, 0, (value) => `${value.slice(0, -4)}${(0x1000 + pick(0xefff)).toString(16)}`);
    slice.rows.splice(at, 0, id);
  },
  'moved to another day'(forged, pick) {
    const { slice, at, row } = choose(forged, pick);
    slice.rows.splice(at, 1);
    addElsewhere(forged, row, slice, pick);
  },
  'settled twice'(forged, pick) {
    const { slice, row } = choose(forged, pick);
    addElsewhere(forged, row, slice, pick);
  },
};

const textsOf = (proof: string) => readProof(proof).days.map(({ closing }) => textOfClosing(closing));

function publish(closings: readonly string[]): Published {
  const checkpoint = checkpointOf(closings);
  const keys = [verifierKey(checkpoint.origin, KINDS.log, SIGNER.publicKey)];
  const signedKeys = signKeys(checkpoint.origin, [SIGNER]);
  return { closings, checkpoint: signCheckpoint(checkpoint, [SIGNER]), keys, signedKeys };
}

/** What a program gets to compare a proof with. */
const given = ({ checkpoint, closings, keys }: Published) => ({ checkpoint, closings, key: keys[0] ?? '' });

/** Returns what the verifier in JavaScript says, which knows what was published. */
async function verified(proof: string, published: Published): Promise<string> {
  const verifier = new Verifier();
  try {
    verifier.piece(proof);
    const sentence = verifier.end();
    await compare(verifier.closings, published, published.keys[0]);
    return sentence;
  } catch (error) {
    return `refused: ${(error as Error).message}`;
  }
}

const file = ofFile();
let whole: string;

before(async () => {
  const ledger = await openLedger(file, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const cafe = await ledger.merchant();
  const cards = [...(await sell(shop, 3, 90)), ...(await sell(cafe, 2, 50))];
  for (const day of ['02', '03', '04', '05']) {
    if (day !== '02') await ledger.at(`2026-03-${day}T10:00:00Z`);
    for (const card of cards) await spend(shop, card, 3, `${day} one${card.serial}`);
    await ledger.at(`2026-03-${day}T10:40:00Z`);
    for (const card of cards) await spend(shop, card, 2, `${day} two${card.serial}`);
  }
  await ledger.at('2026-03-06T00:30:00Z');
  await ledger.close();
  const wanted = { format: 'proof', from: '2026-03-02', to: '2026-03-06' } as const;
  whole = await exportedText(ledger.started.service, wanted);
});

test('every forgery is found, with the day, and no honest proof is refused', async (t) => {
  const published = publish(textsOf(whole));
  assert.match(await verified(whole, published), /^verified: 4 closed days/);
  assert.equal(writeProof(readProof(whole)), writeProof(readProof(whole), false), 'the forger works well');

  const choices = fc.infiniteStream(fc.nat());
  const forging = async (forge: (forged: Forged, pick: Pick) => void, depths: readonly string[]) =>
    fc.assert(
      fc.asyncProperty(choices, fc.constantFrom(...depths), async (stream, depth) => {
        const forged = readProof(whole);
        const pick: Pick = (below) => (stream.next().value ?? 0) % below;
        forge(forged, pick);
        if (depth === 'totals') balance(forged);
        const proof = writeProof(forged, depth !== 'file');
        const sentence = await verified(proof, published);
        assert.match(sentence, /^refused: .*2026-03-0\d/);
        if (pick(PYTHON) > 0) return;
        assert.deepEqual(await run(PROGRAMS.Python, proof, given(published)), [1, sentence]);
      }),
      { numRuns: RUNS },
    );
  for (const [kind, forge] of Object.entries(FORGERIES))
    await t.test(kind, () => forging(forge, ['file', 'hashes', 'totals']));
  await t.test('split view', () => forging(FORGERIES['altered'] ?? assert.fail(), ['totals']));
  await t.test('rolled back', () =>
    fc.assert(
      fc.property(choices, fc.integer({ min: 1, max: 3 }), fc.boolean(), (stream, kept, goesOn) => {
        const forged = readProof(whole);
        const days: Day[] = forged.days.splice(kept);
        if (goesOn) {
          const other: Forged = { ...forged, days };
          FORGERIES['altered']?.(other, (below) => (stream.next().value ?? 0) % below);
          forged.days.push(...days);
          balance(forged);
        }
        const problem = findProblem(publish(textsOf(writeProof(forged))), published);
        assert.match(problem ?? '', goesOn ? /there are two histories/ : /days were taken back/);
      }),
      { numRuns: RUNS },
    ),
  );
  await t.test('honest proofs of some of the days', () =>
    fc.assert(
      fc.asyncProperty(fc.nat(3), fc.nat(3), fc.nat(PYTHON - 1), async (one, other, turn) => {
        const [first, last] = [Math.min(one, other), Math.max(one, other)];
        const some = readProof(whole);
        const days = some.days.slice(first, last + 1);
        const [from, to] = [`2026-03-0${2 + first}`, `2026-03-0${3 + last}`];
        const header = `scrip proof 2 all ${from} ${to}`;
        const grown = publish(published.closings.slice(0, last + 1));
        const proof = writeProof({ ...some, header, days });
        const sentence = await verified(proof, published);
        assert.match(sentence, /^verified: /);
        assert.equal(findProblem(published, grown), undefined);
        if (turn === 0) assert.deepEqual(await run(PROGRAMS.Python, proof, given(published)), [0, sentence]);
      }),
      { numRuns: RUNS },
    ),
  );
});

/** Forgeries whose hashes and totals are all right, which a verifier finds that knows nothing else. */
const IMPOSSIBLE: Record<string, [RegExp, (slices: ReturnType<typeof rowsOf>) => void]> = {
  'a row twice': [/row \S+ \(\w+\) is there twice/, ([slice]) => slice?.rows.unshift(slice.rows[0] ?? '')],
  'a row on a later day': [
    /2026-03-03: row \S+ was moved here from another time/,
    ([first, , second]) => second?.rows.unshift(first?.rows.pop() ?? ''),
  ],
  'a row on an earlier day': [
    /slice 2026-03-02T\S+, row .* is of a later time/,
    ([first, , second]) => first?.rows.push(second?.rows.pop() ?? ''),
  ],
  'the id of another day': [
    /has the id of another time/,
    ([slice]) => slice?.rows.splice(0, 1, (slice.rows[0] ?? '').replace(/^.{8}/, '019cb813')),
  ],
  'a negative amount': [
    /is not the text of a row|has no positive amount/,
    ([slice]) =>
      slice?.rows.splice(
        0,
        1,
        alter(slice.rows[0] ?? '', 4, (value) => `-${value}`),
      ),
  ],
};

test('what cannot be is refused by both programs, although all hashes are right', async (t) => {
  const refused = async (proof: string, sentence: RegExp) => {
    for (const program of Object.values(PROGRAMS)) {
      const [status, said] = await run(program, proof);
      assert.equal(status, 1);
      assert.match(said, /^refused: /);
      assert.match(said, sentence);
    }
  };
  for (const [what, [sentence, forge]] of Object.entries(IMPOSSIBLE))
    await t.test(what, async () => {
      const forged = readProof(whole);
      forge(rowsOf(forged));
      balance(forged);
      await refused(writeProof(forged), sentence);
    });
  await t.test('a row that is in no total', async () => {
    const forged = readProof(whole);
    rowsOf(forged)[0]?.rows.pop();
    await refused(writeProof(forged), /2026-03-02: the rows do not add up to the totals of USD/);
  });
  const forms = {
    '"ages":"': '"ages":"z',
    '"aggregates":{"': '"aggregates":{"A',
    '"differing":[': '"differing":[ ',
  };
  for (const [right, wrong] of Object.entries(forms))
    await t.test(`totals with ${wrong}`, async () => {
      const forged = readProof(whole);
      const [day = assert.fail()] = forged.days;
      day.totals = day.totals.replace(right, wrong);
      await refused(writeProof(forged), /2026-03-02: the totals are not in their form/);
    });
  await t.test('a time zone that is none', async () => {
    const forged = readProof(whole).days[0]?.closing[5] ?? '';
    await refused(whole.replaceAll(`|${forged}|`, `|${forged} |`), /^refused: line \d+ is cut off/);
  });
  await t.test('a row that is booked again as a late row, once or twice', async () => {
    // The row is new, or one of the first day. It stands on later days.
    for (const days of [[2], [1, 3]]) {
      const forged = readProof(whole);
      const [own = assert.fail()] = rowsOf(forged);
      const [row = ''] = days.length === 1 ? own.rows : own.rows.splice(0, 1);
      for (const at of days) {
        const day = forged.days[at] ?? assert.fail();
        day.slices[0]?.rows.unshift(row);
        day.totals = day.totals.replace('"late":[]', `"late":["${row.slice(0, 36)}"]`);
      }
      balance(forged);
      const sentence = `slice 2026-03-0${2 + (days.at(-1) ?? 0)}T\\S+, row \\S+ \\(\\w+\\) is there twice`;
      await refused(writeProof(forged), new RegExp(sentence));
    }
  });
  await t.test('an opening balance that is not the last closing balance', async () => {
    const forged = readProof(whole);
    const day = forged.days[1] ?? assert.fail();
    day.totals = day.totals.replace(/"opening":"(\d+)"/, '"opening":"1$1"');
    await refused(writeProof(forged), /2026-03-03: USD \w+ does not open with what it closed/);
  });
});
