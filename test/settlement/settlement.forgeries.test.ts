import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { prove } from '@scrip/verifier/settlement';
import { checkpointOf, KINDS, signCheckpoint, verifierKey } from '../../src/books/checkpoint.ts';
import { type Published, publishBooks, readPublished } from '../../src/books/publish.ts';
import { signerOf } from '../../src/keyring/ring.ts';
import type { Caller } from '../../src/operation.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { approve } from '../../src/settlement/approve.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { settlementProof } from '../../src/settlement/proof.ts';
import { sell, spend } from '../support/books.ts';
import { change, type ForgedSettlement, placesOf, remake } from '../support/forgeries.settlements.ts';
import { temporaryFolder } from '../support/leave-nothing.ts';
import { ofFile } from '../support/scope.ts';
import { close, openScene, terms } from '../support/settlements.ts';
import { BIN } from '../support/terminal.ts';

/** The file of a till against honest and forged proofs of settlements. */

const DAYS = ['2026-03-01', '2026-03-02', '2026-03-03'] as const;
const TILL = [
  ['sale 1', '60', '2026-03-01T10:00:00Z'],
  ['sale 2', '40.10', '2026-03-01 10:00'],
  ['sale 3', '5.00', '2026-03-02T10:00:00Z'],
  ['sale 2', '-10.10', '2026-03-02T10:00:00Z'],
  ['sale 4', '7', ''],
];

function runClient(...args: readonly string[]): Promise<{ status: number; out: string; err: string }> {
  return new Promise((resolve) =>
    execFile(process.execPath, [BIN, ...args], (error, out, err) =>
      resolve({ status: error ? Number(error.code) : 0, out, err }),
    ),
  );
}

const file = ofFile();
let proofs: string[];
let published: Published;
let key: string;

before(async () => {
  const scene = await openScene(file);
  const { ledger, issuer, shop } = scene;
  const { operator } = ledger;
  const { service } = ledger.started;
  await terms(operator, shop.merchant.id);
  const [one, other, third] = await sell(issuer, 3, 60);
  assert.ok(one && other && third);
  await ledger.at('2026-03-01T10:00:00Z');
  await spend(shop, one, 60, 'sale 1');
  await spend(shop, other, 40.1, 'sale 2');
  await ledger.at('2026-03-01T11:00:00Z');
  await spend(issuer, third, 1, 'of another merchant');
  await ledger.at('2026-03-02T10:00:00Z');
  await close(ledger);
  await spend(shop, third, 5, 'sale 3');
  await updateRedemption({ ...shop, now: service.clock() }, { reference: 'sale 2', amountUsed: 30 });
  await ledger.at('2026-03-03T10:00:00Z');
  await close(ledger);
  await spend(shop, third, 7, 'sale 4');
  await ledger.at('2026-03-04T00:30:00Z');
  await close(ledger);
  proofs = [];
  for (const lastDay of DAYS) {
    const [draft] = await draftSettlements(operator, { merchantId: shop.merchant.id, lastDay });
    await approve(operator, draft?.id ?? 0);
    const { content } = await settlementProof.run(operator as Caller, { id: draft?.id ?? '' });
    proofs.push((await Array.fromAsync(content as AsyncIterable<string>)).join(''));
  }
  const folder = await temporaryFolder('scrip-published-');
  await publishBooks(service, folder);
  published = (await readPublished(folder)) ?? assert.fail();
  [key = ''] = published.keys;
});

const csv = (rows: readonly (readonly string[])[], header = 'Reference;Amount;Time') =>
  `${[header, ...rows.map((row) => row.join(';'))].join('\r\n')}\r\n`;

const proveAll = (till = csv(TILL), given = proofs) => prove(till, given, { key, published });

test('the file of a till is proved, whatever its columns', async () => {
  const { findings, notes, sentence } = await proveAll();
  assert.deepEqual(findings, []);
  assert.match(
    sentence ?? '',
    /^proved: the 5 lines of the file, 102\.00 USD, are in closed days, each in one/,
  );
  assert.match(notes.join('\n'), /^settlement \d+-2026-0001: not paid yet$/m);
  const other = TILL.map(([reference, amount]) => `"till, 7",${amount},usd,"${reference}"`).join('\n');
  const { sentence: same } = await proveAll(`\ufeffTill,amount,Currency,reference\n${other}\n\n`);
  assert.equal(same, sentence);
  const named = csv(TILL, 'sep=;\r\nReference;Amount;Time').replaceAll('.', ',');
  assert.equal((await proveAll(named)).sentence, sentence);
});

test('each difference between a file and the settlements is a sentence', async () => {
  const [one = [], two = [], ...rest] = TILL;
  const cases: [readonly (readonly string[])[], RegExp][] = [
    [
      [two, ...rest],
      /^sale 1, 60\.00 USD at 2026-03-01T10:00:\S+, is in settlement \S+-0001, and not in the file$/,
    ],
    [[...TILL, ['sale 9', '3', '2026-03-02']], /^line 7: sale 9, 3\.00 USD, is in no settlement$/],
    [
      [...TILL, ['sale 9', '3', '2026-03-04 09:00']],
      /^line 7: .* is of 2026-03-04: these settlements end with/,
    ],
    [[...TILL, ['sale 9', '3', '2026-02-28']], /^line 7: .* is of 2026-02-28: these settlements begin with/],
    [
      [['sale 1', '59.99'], two, ...rest].map((row) => [...row, '']),
      /^line 2: sale 1 is 59\.99 USD in the file, and 60\.00 USD in settlement/,
    ],
    [[one, ...TILL], /^line 2 and 3: sale 1 is 2 times in the file, and once in settlement/],
    [[...TILL, ['sale 9', 'free', '']], /^line 7: free is no amount of USD$/],
    [[...TILL, ['sale 9', '1.001', '']], /^line 7: 1\.001 is no amount of USD$/],
    [[...TILL, ['sale 9', '1.00']], /^line 7: it is cut off: it has 2 of 3 columns$/],
    [[...TILL, ['"sale 9', '1.00', '']], /^line 7: it is cut off/],
  ];
  for (const [rows, expected] of cases) {
    const { findings, sentence } = await proveAll(csv(rows));
    assert.deepEqual([findings.length, sentence], [1, undefined], findings.join('\n'));
    assert.match(findings[0] ?? '', expected);
  }
  for (const [till, expected] of [
    ['', /has no header/],
    ['receipt;amount\n', /has no header/],
    ['reference;Amount;amount\nsale 1;60;50\n', /has the column amount twice/],
    [csv([['sale 1', '60', 'EUR']], 'reference;amount;currency'), /^line 2: no settlement in EUR was given$/],
  ] as const)
    assert.match((await proveAll(till)).findings[0] ?? '', expected);
});

test('the command of the client proves the same, and its exit status says it', async () => {
  const folder = await temporaryFolder('scrip-prove-');
  const write = async (name: string, text: string) => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  const settlements = await Promise.all(proofs.map((text, at) => write(`${at}.json`, text)));
  const till = await write('till.csv', csv(TILL));
  const whole = await runClient('prove', till, ...settlements, '--key', key);
  assert.deepEqual([whole.status, whole.out.startsWith('proved: the 5 lines')], [0, true], whole.err);
  const part = await runClient('prove', till, ...settlements.slice(1), '--json');
  assert.equal(part.status, 1);
  const { proved, findings } = JSON.parse(part.out);
  assert.deepEqual([proved, findings.length], [false, 2]);
  assert.match(
    findings[0],
    /^line 2: sale 1, 60\.00 USD, is of 2026-03-01: these settlements begin with 2026-03-02$/,
  );
  const none = await runClient('prove', till, join(folder, 'none.json'));
  assert.deepEqual([none.status, none.out], [1, '']);
  assert.match(none.err, /none\.json does not exist/);
  const said = async (bytes: string | Buffer) => {
    await writeFile(till, bytes);
    const { status, out, err } = await runClient('prove', till, ...settlements);
    return status === 0 ? out : err;
  };
  assert.match(await said(Buffer.from(`\ufeff${csv(TILL)}`, 'utf16le')), /^proved: the 5 lines/);
  assert.match(await said('PK\u0003\u0004'), /till\.csv is a workbook: save it as CSV$/m);
  const latin = Buffer.from(csv([['Käse', '1', '']]), 'latin1');
  assert.match(await said(latin), /till\.csv is no text in UTF-8: save it as CSV UTF-8$/m);
  const ofFolder = await runClient('prove', folder, ...settlements);
  assert.match(ofFolder.err, /is a folder: name a file$/m);
});

test('a file that cannot be a proof is refused in one line', async () => {
  const [whole = ''] = proofs;
  const refused = async (text: string, expected: RegExp, options: Parameters<typeof prove>[2] = { key }) => {
    const { findings, sentence } = await prove(csv(TILL), [text], options);
    assert.deepEqual([findings.length, sentence], [1, undefined]);
    assert.match(findings[0] ?? '', expected);
  };
  for (let part = 0; part < 8; part++)
    await refused(whole.slice(0, (whole.length * part) / 8), /^the file: it is cut off, or is no JSON$/);
  await refused('{}', /^the file: it is no proof of a settlement$/);
  await refused(whole.replace('"settlementProof":2', '"settlementProof":3'), /has version 3/);
  await refused(whole.replace('"payments":[]', '"payments":7'), /^settlement \S+: it is damaged/);
  await refused(
    whole.replace(/"state":"\w+"/, '"state":"PAID"'),
    /states that it is paid, and names no payout/,
  );
  const zeros = '0'.repeat(64);
  await refused(whole.replace(/"root":"\w+"/, `"root":"${zeros}"`), /its rows are not those of its root/);
  await refused(
    whole.replace(/"closingHash":"\w+"/, `"closingHash":"${zeros}"`),
    /states another closing of/,
  );
  await refused(
    whole.replace(/"closing":"[\d.]+"/, '"closing":"1.00"'),
    /its rows lead from 0\.00 to 97\.10/,
  );
  await refused(
    whole.replace('"payable":"97.10"', '"payable":"9.71"'),
    /states that 9\.71 is payable, and 97\.10 less 0\.00 would be/,
  );
  await refused(whole.replace('"carried":"0.00"', '"carried":"0x0"'), /0x0 is no amount/);
  await refused(whole.replace('"payable":"97.10"', '"payable":"9710"'), /9710 is not written like 97\.10/);
  const stranger = signerOf(Buffer.alloc(32, 9));
  const forged: ForgedSettlement = JSON.parse(whole);
  forged.checkpoint.note = signCheckpoint(checkpointOf(published.closings), [stranger]);
  await refused(JSON.stringify(forged), /is not valid: the checkpoint was changed|another installation/);
  await refused(whole, /does not have its own id/, { key: key.replace(/\+[0-9a-f]{8}/, '+00000000') });
  const other = verifierKey(checkpointOf(published.closings).origin, KINDS.log, stranger.publicKey);
  await refused(whole, /belongs to another installation/, { key: other });
});

type Forge = (forged: ForgedSettlement[], pick: number) => unknown;

/** A redemption of the shop, with its place among the lines of the proof. */
function choose(forged: ForgedSettlement, pick: number) {
  const places = placesOf(forged).filter((at) => forged.proof[at]?.includes('|REDEMPTION|'));
  const at = places[pick % places.length] ?? assert.fail();
  return { at, line: forged.proof[at] ?? assert.fail() };
}

const orderOf = (line: string) => `${line.split('|')[6]} ${line}`;

/** Puts a row among those of a slice of another settlement, in the order of their time and id. */
function put({ proof, ...into }: ForgedSettlement, line: string, pick: number): void {
  const { at } = choose({ proof, ...into }, pick);
  const first = proof.findLastIndex((each, index) => index < at && each.startsWith('slice '));
  const next = proof.findIndex(
    (each, index) => index > first && each.startsWith('row ') && orderOf(each) > orderOf(line),
  );
  const isLast = next < 0 || proof.slice(first + 1, next).some((each) => !/^(?:row|-) /.test(each));
  proof.splice(isLast ? at + 1 : next, 0, line);
}

const SLICE = new RegExp(
  String.raw`^settlement \S+-000\d: (slice 2026-03-0\dT10:00:00.000Z: (a row was added|\d rows? closed)|` +
    String.raw`2026-03-0\d: a row or a slice is not the one that was closed|` +
    String.raw`line \d+, slice 2026-03-0\dT10:00:00.000Z: a hidden part)`,
  'm',
);
const SIGNED =
  /^settlement \S+-0001: the checkpoint is not signed by the key \S+: it belongs to another installation$/m;

/** What the file of the till or another settlement shows, whatever the hashes; and how to forge it. */
const FORGERIES: Record<string, readonly [seen: RegExp, forge: Forge]> = {
  altered: [
    /^line [\d and]+: sale \d is \d+\.\d\d USD in the file, and \d+\.\d\d USD in settlement \S+-0001$/m,
    ([one = assert.fail()], pick) => {
      const { at, line } = choose(one, pick);
      one.proof[at] = change(line, 4, (amount) => String(Number(amount) - 1));
    },
  ],
  dropped: [
    /^line \d: sale \d, \d+\.\d\d USD, is in no settlement$/m,
    ([one = assert.fail()], pick) => one.proof.splice(choose(one, pick).at, 1),
  ],
  added: [
    /^never sold, \d+\.\d\d USD at \S+, is in settlement \S+-0001, and not in the file$/m,
    ([one = assert.fail()], pick) => {
      const copy = change(choose(one, pick).line, 0, (id) => `${id.slice(0, -6)}abcdef`);
      put(
        one,
        change(copy, 12, () => 'never sold'),
        pick,
      );
    },
  ],
  'moved to another day': [
    /^2026-03-02 in settlement \S+ does not follow 2026-03-01 in settlement \S+: there are two histories$/m,
    ([one = assert.fail(), other = assert.fail()], pick) => {
      const [line = assert.fail()] = one.proof.splice(choose(one, pick).at, 1);
      put(other, line, pick);
    },
  ],
  'settled twice': [
    /^row \S+ \(REDEMPTION\) is in settlement \S+-0001 and in settlement \S+-0002: it was settled twice$/m,
    ([one = assert.fail(), other = assert.fail()], pick) => put(other, choose(one, pick).line, pick),
  ],
};

describe('a forgery is found, with what and where:', () => {
  const copies = () => proofs.map((text): ForgedSettlement => JSON.parse(text));
  const texts = (forged: readonly ForgedSettlement[]) => forged.map((each) => JSON.stringify(each));
  const stranger = signerOf(Buffer.alloc(32, 9));
  const makeRight = (forged: readonly ForgedSettlement[]) => {
    const { origin } = checkpointOf(published.closings);
    for (const each of forged)
      remake(each, (size, root) => signCheckpoint({ origin, size, root }, [stranger]));
  };

  for (const [kind, [seen, forge]] of Object.entries(FORGERIES))
    test(kind, async () => {
      for (const depth of ['file', 'hashes', 'hashes, unverified'] as const)
        for (let pick = 0; pick < 6; pick++) {
          const forged = copies();
          forge(forged, pick);
          if (depth !== 'file') makeRight(forged);
          // Without a key and published days, the file of the till itself shows what differs.
          const options = depth === 'hashes, unverified' ? {} : { key, published };
          const { findings, sentence } = await prove(csv(TILL), texts(forged), options);
          assert.equal(sentence, undefined, `${kind} ${depth} ${pick}`);
          assert.match(
            findings.join('\n'),
            { file: SLICE, hashes: SIGNED, 'hashes, unverified': seen }[depth],
          );
        }
    });

  test('split view', async () => {
    const forged = copies();
    const [one = assert.fail()] = forged;
    const [at = assert.fail()] = placesOf(one);
    one.proof[at] = change(one.proof[at] ?? '', 11, () => 'key_other');
    makeRight([one]);
    const { findings } = await prove(csv(TILL), texts(forged));
    assert.match(
      findings.join('\n'),
      /2026-03-02 in settlement \S+ does not follow 2026-03-01 .*: there are two/,
    );
    assert.match(
      (await prove(csv(TILL), texts([one]), { published })).findings.join('\n'),
      /^settlement \S+-0001: 2026-03-01 is not the day that \S+ published: there are two histories$/,
    );
  });

  test('rolled back', async () => {
    const { checkpoint, closings } = published;
    assert.match(
      (await prove(csv(TILL), proofs, { published: { checkpoint, closings: closings.slice(0, 2) } }))
        .findings[0] ?? '',
      /the checkpoint has 3 days, and fewer are published/,
    );
    const note = signCheckpoint(checkpointOf(closings.slice(0, 2)), [stranger]);
    const { findings } = await prove(csv(TILL), proofs, { published: { checkpoint: note, closings } });
    assert.deepEqual(findings.length, 1);
    assert.match(findings[0] ?? '', /^settlement \S+-0003: 2026-03-03 is not in the checkpoint of/);
  });
});
