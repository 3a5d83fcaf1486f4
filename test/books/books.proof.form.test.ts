import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { compare } from '@scrip/verifier';
import {
  checkpointOf,
  cosign,
  KINDS,
  readCheckpoint,
  signCheckpoint,
  verifierKey,
} from '../../src/books/checkpoint.ts';
import { leafHash, rootOf } from '../../src/books/merkle.ts';
import { withHidden } from '../../src/books/proof.ts';
import { signerOf } from '../../src/keyring/ring.ts';
import { balance, type Forged, readProof, textOfClosing, writeProof } from '../support/forgeries.ts';
import { PROGRAMS, run, verified } from '../support/proof-programs.ts';

/** The form of a proof: its length, and what both programs refuse. */

const page = await readFile(new URL('../../docs/reference/proof.md', import.meta.url), 'utf8');
const [, example = ''] = /^```text\n([\s\S]*?)^```/m.exec(page) ?? [];

/** Both programs refuse a file, each with one line. */
async function refused(text: string, sentence: RegExp): Promise<void> {
  const [status, said] = await run(PROGRAMS.Python, text);
  assert.equal(status, 1, said);
  for (const each of [said, verified(text)]) {
    assert.equal(each.split('\n').length, 1, each);
    assert.match(each, /^refused: /);
    assert.match(each, sentence);
  }
}

const DAY = '2026-03-02';
const START = Date.parse(DAY);
const SLICE_MS = 900_000;

/** The text of a row, such as tills make. */
function rowOf(ms: number, number: number): string {
  const id = ms.toString(16).padStart(12, '0');
  const digits = number.toString(16).padStart(6, '0').replace(/^.{3}/, '$&-8');
  const uuid = `${id.slice(0, 8)}-${id.slice(8)}-7${digits}`;
  const tail = hash('sha256', String(number)).slice(0, 12);
  const values = [`${uuid}-${tail}`, 'REDEMPTION', 10_000_000_074, 318, 2_500, 'EUR', ms * 1_000];
  return [...values, 10_000_000_074, '', 27, '', 'key_0a1B2c3D4e5F6g7H', `order-${number}`].join('|');
}

/** A proof of one row of a day, of whose other rows there are only hashes. */
async function proofOfOne({ slices = 96, rows, slice, row }: Record<string, number>): Promise<string> {
  const at = START + (slice ?? 0) * SLICE_MS;
  const rowAt = (number: number) => rowOf(at + Math.floor((number * (SLICE_MS - 1)) / (rows ?? 1)), number);
  const leaves: Buffer[] = [];
  const lines: string[] = [];
  const own = Array.from({ length: rows ?? 0 }, (_, number) => rowAt(number)).map((text, number) => {
    leaves.push(leafHash(text));
    return number === row ? { lines: [`row ${text}`] } : { hash: leafHash(text) };
  });
  const start = new Date(at).toISOString();
  const roots: Buffer[] = [];
  const days = await Promise.all(
    Array.from({ length: slices }, async (_, number) => {
      if (number !== slice) {
        roots.push(leafHash(`another slice ${number}`));
        return { hash: leafHash(`another slice ${number}`) };
      }
      roots.push(leafHash(`${start}|${rows}|${rootOf(leaves).toString('hex')}`));
      return { lines: [`slice ${start}|${rows}`, ...(await Array.fromAsync(withHidden(own)))] };
    }),
  );
  lines.push(`scrip proof 2 some ${DAY} 2026-03-03`, ...(await Array.fromAsync(withHidden(days))));
  const anyHash = hash('sha256', '', 'base64');
  const [first, last] = [rowOf(START, 1), rowOf(START + 86_399_000, 2)].map((text) => text.slice(0, 36));
  const times = [`${DAY}T00:00:00.000Z`, '2026-03-03T00:00:00.000Z', 'Europe/Berlin'];
  const values = [1, anyHash, DAY, ...times, slices * (rows ?? 0), first, last];
  lines.push(
    `closing ${[...values, rootOf(roots).toString('base64'), anyHash, '2026-03-03T00:30:00.000Z'].join('|')}`,
  );
  return `${lines.join('\n')}\n`;
}

test('the proof of one row of a million has at most 1,536 bytes, wherever it stands', async () => {
  const rows = 10_417;
  for (const [slice, row] of [
    ...[0, 1, 5_208, 8_191, 8_192, 10_415, 10_416].map((row) => [47, row] as const),
    ...[0, 63, 64, 95].map((slice) => [slice, 5_461] as const),
  ]) {
    const text = await proofOfOne({ rows, slice, row });
    assert.ok(
      Buffer.byteLength(text) <= 1_536,
      `slice ${slice}, row ${row}: ${Buffer.byteLength(text)} bytes`,
    );
    assert.match(verified(text), /^verified: 1 closed day up to 2026-03-02, 1 row shown, others hidden/);
  }
});

test('any leaf of a tree of any size is proved by at most as many hashes as the tree has levels', async () => {
  for (let rows = 1; rows <= 17; rows++)
    for (let row = 0; row < rows; row++) {
      const text = await proofOfOne({ slices: 1, rows, slice: 0, row });
      const hashes = [...text.matchAll(/^- \d+ (\S+)$/gm)].reduce(
        (sum, [, base64 = '']) => sum + Buffer.from(base64, 'base64').length / 32,
        0,
      );
      assert.ok(hashes <= Math.ceil(Math.log2(rows)), `${rows} rows, row ${row}: ${hashes} hashes`);
      assert.match(verified(text), /^verified: /, `${rows} rows, row ${row}`);
    }
});

describe('refused by both programs:', () => {
  const [first = '', ...others] = example.split('\n');
  const without = (pattern: RegExp) => example.replace(pattern, '');

  for (const [what, text, sentence] of [
    ['no file', '', /^refused: the file is empty$/],
    ['another file', 'reference;amount\n', /^refused: the file is no proof: its first line/],
    ['an older version', `{"proof":1,"from":"${DAY}"}\n`, /^refused: the file is no proof/],
    ['another version', example.replace('proof 2', 'proof 3'), /^refused: the proof has version 3, and this/],
    ['a version with more digits', example.replace('proof 2', 'proof 02'), /has version 02, and this/],
    ['another computation', example.replace('closing 1', 'closing 2'), /was closed by version 2, and this/],
    ['a first line that is cut off', `${first.slice(0, -11)}\n`, /^refused: line 1 is cut off/],
    [
      'a file that is cut off',
      example.slice(0, -1),
      /^refused: the file is cut off: line 12 has no line feed/,
    ],
    [
      'a line that is cut off',
      example.replace(/.{9}\n$/, '\n'),
      /^refused: line 12 is cut off, or is no line/,
    ],
    ['no closing', without(/^closing.*\n/m), /^refused: the file is cut off: it ends before the closing/],
    ['no totals', without(/^totals.*\n/m), /^refused: 2026-03-02: the totals are missing$/],
    ['lines of another system', [first, ...others].join('\r\n'), /^refused: /],
    ['a line before the first', `\n${example}`, /^refused: the file is no proof/],
    ['an empty line', `${first}\n\n${others.join('\n')}`, /^refused: line 2 is cut off, or is no line/],
    [
      'a hidden part',
      `${first}\n- 1 ${'A'.repeat(43)}=\n${others.join('\n')}`,
      /hidden in a proof that shows all/,
    ],
    [
      'digits of another script',
      example.replace('|3|', '|1\u0663|'),
      /^refused: line 2 is cut off, or is no line/,
    ],
    ['a slice with a negative number', example.replace('Z|3|', 'Z|-3|'), /^refused: line 2 is cut off/],
    ['a huge slice', example.replace('Z|3|', `Z|${'9'.repeat(400)}|`), /^refused: line 2 is cut off/],
    ['a slice without rows', example.replace('Z|3|', 'Z|0|'), /^refused: line 2 is cut off/],
    [
      'a day that does not exist',
      example.replaceAll('03-02T09:0', '13-02T09:0'),
      /2026-13-02T09:00:00.000Z is no time$/,
    ],
    ['an account with two kinds', example.replace('account 3', 'account 2'), /account 2 is named twice$/],
  ] as const)
    test(what, () => refused(text, sentence));
});

describe('refused by both programs, although all hashes are right:', () => {
  /** Forges the example, and makes all hashes and totals right again. */
  const forged = (forge: (proof: Forged) => void) => {
    const proof = readProof(example);
    forge(proof);
    balance(proof);
    return writeProof(proof);
  };
  const totals = (change: (totals: { balances: Record<string, string>[]; checks: object[] }) => void) => {
    const proof = readProof(example);
    const [day = assert.fail()] = proof.days;
    const own = JSON.parse(day.totals);
    change(own);
    day.totals = JSON.stringify(own);
    return writeProof(proof);
  };
  const slicesOf = ({ days: [day = assert.fail()] }: Forged) => day.slices;
  const closingOf = ({ days: [day = assert.fail()] }: Forged) => day.closing;

  for (const [what, text, sentence] of [
    [
      'slices in another order',
      forged((proof) => slicesOf(proof).reverse()),
      /is there twice, or not in its place/,
    ],
    [
      'a slice of the day before',
      forged((proof) => {
        const { rows } = slicesOf(proof)[0] ?? assert.fail();
        const moved = (ms: number) => String(Number(ms) - 86_400_000_000);
        const id = '019ca8a0-3e80';
        const earlier = rows.map((row) =>
          row.replace(/^.{13}/, id).replace(/(?<=\|)1772\d+/, (us) => moved(Number(us))),
        );
        slicesOf(proof).unshift({ text: '2026-03-01T09:00:00.000Z|3|', rows: earlier });
      }),
      /contains a slice of an earlier day/,
    ],
    [
      'a slice of the day after',
      forged((proof) => closingOf(proof).splice(4, 1, '2026-03-02T09:15:00.000Z')),
      /contains a slice of a later day/,
    ],
    [
      'a balance that is there twice',
      totals(({ balances }) => balances.push({ ...balances[0] })),
      /the totals have USD \w+ twice/,
    ],
    [
      'a check that had failed',
      totals(({ checks }) => Object.assign(checks[0] ?? {}, { differing: ['1'] })),
      /was closed although a check had failed/,
    ],
    [
      'an amount that is no number',
      forged((proof) => {
        const slice = slicesOf(proof)[0] ?? assert.fail();
        slice.rows = slice.rows.map((row) => row.replace('|5000|', '|0x1388|'));
      }),
      /is not the text of a row/,
    ],
  ] as const)
    test(what, () => refused(text, sentence));
});

describe('another form is refused by both programs, although all hashes are right:', () => {
  const proof = (change: (proof: Forged) => void) => {
    const forged = readProof(example);
    change(forged);
    return writeProof(forged);
  };
  const row = (at: number, value: string) =>
    proof(({ days: [day = assert.fail()] }) => {
      const [slice = assert.fail()] = day.slices.slice(1);
      slice.rows = slice.rows.map((text) => text.split('|').with(at, value).join('|'));
    });
  const totals = (one: string | RegExp, other: string) =>
    proof(({ days: [day = assert.fail()] }) => {
      assert.match(day.totals, new RegExp(one));
      day.totals = day.totals.replace(one, other);
    });
  const closing = (at: number, value: string) =>
    proof(({ days: [day = assert.fail()] }) => day.closing.splice(at, 1, value));
  const line = (text: string) => example.replace('\n', `\n${text}\n`);
  const some = page.slice(page.indexOf('scrip proof 2 some')).split('```')[0] ?? '';

  for (const [what, text, sentence] of [
    ...(
      [
        [2, '010000000074'],
        [6, '01772443200000000'],
        [7, '0x1'],
        [8, 'none'],
        [9, '١'],
        [10, ' 1'],
      ] as const
    ).map(([at, value]) => [`the value ${at} of a row as ${value}`, row(at, value)]),
    ['rows in another order', proof(({ days: [day] }) => day?.slices[0]?.rows.reverse())],
    ...['00', '-0', ' 0', '+0', '0x0', '٠', '0_0'].map((zero) => [
      `an opening balance of ${zero}`,
      totals('"opening":"0"', `"opening":"${zero}"`),
    ]),
    ['an opening balance as a number', totals('"opening":"0"', '"opening":0')],
    ['a failed check that is no list', totals(/"differing":\[\]/, '"differing":true')],
    ['late rows that are no list', totals(/"late":\[\]/, '"late":null')],
    ['totals without late rows', totals(/,"late":\[\]/, '')],
    ['totals with a number that is none', totals(/\}$/, ',"more":NaN}')],
    ['totals with a space', totals(/$/, ' ')],
    ['30 February', closing(11, '2026-02-30T00:00:00.000Z')],
    ['hour 24', closing(4, '2026-03-02T24:00:00.000Z')],
    ['a day that ends before it begins', closing(4, '2026-03-01T00:00:00.000Z'), /ends before it begins$/],
    [
      'a hash whose base64 has another last bit',
      example.replace('ZtI=', 'ZtJ=').replace('Z0=', 'Z1=').replace('Zo=', 'Zp='),
    ],
    ['a word without a value', line('accountX')],
    ['an account with three values', line('account 9 FLOAT more')],
    ['an account of a batch', line('account 5000000001 RESERVE')],
    ['an account, if only some rows are shown', some.replace('\n', '\naccount 2 FLOAT\n')],
    ['totals, if only some rows are shown', some.replace('\nclosing', '\ntotals {}\nclosing')],
    ['rows behind the totals', example.replace(/(slice \S*09:15[\s\S]*)(totals.*\n)/, '$2$1')],
    ['a byte order mark', `\ufeff${example}`],
    ['totals without a closing', `${example}totals \n`],
  ] as [string, string, RegExp?][])
    test(what, () => refused(text, sentence ?? /^refused: /));

  test('bytes that are no UTF-8', async () => {
    const text = row(12, 'till \ufffd');
    assert.match(verified(text), /^verified: /);
    const bytes = Buffer.from(text.replace('\ufffd', '?'));
    bytes[bytes.indexOf('till ?') + 5] = 0xff;
    for (const program of Object.values(PROGRAMS)) assert.equal((await run(program, bytes))[0], 1);
  });
});

describe('a hidden part is refused', () => {
  for (const [what, change] of [
    ['with one hash less', (base64: string) => base64.slice(0, 44).replace(/.$/, '=')],
    ['that is cut off', (base64: string) => base64.slice(0, -4)],
    ['with a hash more', (base64: string) => `${'A'.repeat(128)}${base64}`],
    ['that is empty', () => ''],
  ] as const)
    test(what, async () => {
      const text = await proofOfOne({ rows: 100, slice: 47, row: 41 });
      assert.match(verified(text), /^verified/);
      await refused(
        text.replace(/(?<=^- 41 )\S+/m, change),
        /^refused: line \d+(, slice \S+: a hidden part| is) |row \S+ \(REDEMPTION\) was added/,
      );
    });
  test('without hashes in its middle', async () => {
    const text = await proofOfOne({ rows: 100, slice: 47, row: 41 });
    const two = (base64: string) => Buffer.from(base64, 'base64').subarray(0, 64).toString('base64');
    await refused(text.replace(/(?<=^- 58 )\S+/m, two), /^refused: line \d+, slice \S+: a hidden part/);
  });
  for (const [what, change] of [
    ['with another number of leaves', (leaves: string) => String(Number(leaves) + 1)],
    ['with a negative number of leaves', (leaves: string) => `-${leaves}`],
    ['with more leaves than there are numbers', () => '9'.repeat(30)],
    ['with no leaves', () => '0'],
  ] as const)
    test(what, async () => {
      const text = await proofOfOne({ rows: 100, slice: 47, row: 41 });
      await refused(text.replace(/(?<=^- )58(?= )/m, change), /^refused: /);
    });

  test('if something follows the end of its tree', async () => {
    const text = await proofOfOne({ rows: 100, slice: 47, row: 41 });
    const [row = ''] = /^row .*\n/m.exec(text) ?? [];
    // The last part ends with a subtree of 36 leaves, which is not complete.
    const more = text.replace('Z|100', 'Z|101').replace(/^- 58 .*\n/m, (part) => `${part}${row}`);
    await refused(more, /row \S+ \(REDEMPTION\) was added/);
  });
});

describe('a published folder that is not that of the proof:', () => {
  const [own = assert.fail(), other = assert.fail()] = [1, 2].map((seed) => signerOf(Buffer.alloc(32, seed)));
  const closings = readProof(example).days.map(({ closing }) => textOfClosing(closing));
  const checkpoint = checkpointOf(closings);
  const note = signCheckpoint(checkpoint, [own]);
  const key = verifierKey(checkpoint.origin, KINDS.log, own.publicKey);
  const sign = (changed: Partial<typeof checkpoint>) => signCheckpoint({ ...checkpoint, ...changed }, [own]);
  const { text: signed } = readCheckpoint(note) ?? assert.fail();
  const witness = verifierKey('scrip-witness/1', KINDS.witness, other.publicKey);
  const cosigned = `${note}${cosign(signed, 'scrip-witness/1', other, new Date('2026-03-03T01:00:00Z'))}`;

  /** Both programs refuse what was published, with the same sentence. */
  async function rejected(published: Parameters<typeof compare>[1], given: string, sentence: RegExp) {
    const { message } = await compare(closings, published, given).then(
      () => assert.fail('it was accepted'),
      (error: Error) => error,
    );
    assert.match(message, sentence);
    const said = await run(PROGRAMS.Python, example, { ...published, key: given });
    assert.deepEqual(said, [1, `refused: ${message}`]);
  }

  for (const [what, text, given] of [
    ['the right one', note, key],
    [
      'the right one with signatures of others',
      `${note}${signCheckpoint(checkpoint, [other]).split('\n').at(-2)}\n`,
      key,
    ],
    ['the right one with that of a witness', cosigned, key],
    ['the key of a witness', cosigned, witness],
    ['no key', note, undefined],
  ] as const)
    test(`accepted: ${what}`, async () => {
      const published = { checkpoint: text, closings };
      for (const program of Object.values(PROGRAMS)) {
        const [status, said] = await run(program, example, given ? { ...published, key: given } : published);
        assert.equal(status, 0, said);
        assert.match(
          said,
          given
            ? /^verified: 1 closed day .*$/
            : /^verified: .*\nno signature was verified: no key was given$/,
        );
      }
    });

  const [text = ''] = closings;
  for (const [what, day, previous] of [
    ['a day that is closed twice', '2026-03-02', leafHash(text).toString('hex')],
    ['a day that does not follow', '2026-03-03', '0'.repeat(64)],
  ] as const)
    test(what, () => {
      const next = JSON.parse(text) as string[];
      next.splice(1, 2, previous, day);
      const all = [text, JSON.stringify(next)];
      const forged = signCheckpoint(checkpointOf(all), [own]);
      return rejected(
        { checkpoint: forged, closings: all },
        key,
        /does not follow the day before it in what/,
      );
    });

  test('another origin, signed under the name of the key', () => {
    const idOf = (text: string) => Buffer.from(text.trimEnd().split(' ').at(-1) ?? '', 'base64');
    const forged = sign({ origin: 'scrip/other' });
    const signature = Buffer.concat([idOf(note).subarray(0, 4), idOf(forged).subarray(4)]).toString('base64');
    const text = `${forged.slice(0, forged.indexOf('\n\n'))}\n\n\u2014 ${checkpoint.origin} ${signature}\n`;
    return rejected({ checkpoint: text, closings }, key, /it belongs to another installation/);
  });

  /** Changes the time of the last signature, which is of a witness. */
  const laterBy1 = (text: string) => {
    const [, base64 = ''] = /(\S+)\n$/.exec(text) ?? [];
    const bytes = Buffer.from(base64, 'base64');
    bytes.writeBigUInt64BE(bytes.readBigUInt64BE(4) + 1n, 4);
    return text.replace(base64, bytes.toString('base64'));
  };
  const named = (name: string) => verifierKey(name, KINDS.log, own.publicKey);
  for (const [what, text, sentence, given] of [
    [
      'another key',
      note,
      /it belongs to another installation/,
      verifierKey(checkpoint.origin, KINDS.log, other.publicKey),
    ],
    ['the key of a witness that has not confirmed it', note, /the witness has not confirmed it/, witness],
    ['another time of a witness', laterBy1(cosigned), /signature of scrip-witness\/1 is not valid/, witness],
    [
      'what a witness has confirmed, changed',
      cosigned.replace('\n1\n', '\n2\n'),
      /signature of \S+ is not valid/,
      witness,
    ],
    ['the key of another kind', note, /the key is not name/, key.replace(/\+A\w(?=[^+]{42}$)/, '+Ag')],
    ['a key that is cut off', note, /the key is not name/, key.slice(0, -1)],
    ['another origin', sign({ origin: 'scrip/other' }), /it belongs to another installation/, key],
    [
      'another origin, with its key',
      sign({ origin: 'scrip/other' }),
      /not the origin of the published/,
      named('scrip/other'),
    ],
    ['a changed size', note.replace('\n1\n', '\n2\n'), /signature of \S+ is not valid/, key],
    ['a huge size', sign({ size: 999_999_999 }), /has 999999999 days, and fewer are published/, key],
    ['a size with another digit', note.replace('\n1\n', '\n01\n'), /is cut off, or is none/, key],
    ['a line more in the text', note.replace('\n\n', '\nmore\n\n'), /is cut off, or is none/, key],
    ['a signature that is cut off', note.slice(0, -9), /it belongs to another installation/, key],
    ['a signature with more bytes', note.replace(/\n$/, 'AAAA\n'), /it belongs to another installation/, key],
    ['no signature', note.slice(0, note.indexOf('\n\n') + 2), /it belongs to another installation/, key],
    [
      'a signature with a word more',
      note.replace(/\n$/, ' more\n'),
      /it belongs to another installation/,
      key,
    ],
    [
      'a signature whose base64 has another last bit',
      note.replace(/.(?==\n$)/, (last) => String.fromCharCode(last.charCodeAt(0) + 1)),
      /it belongs to another installation/,
      key,
    ],
    [
      'a key under another id',
      note.replaceAll(/\u2014 (\S+) \S{5}/g, '\u2014 $1 AAAAA'),
      /does not have its own id$/,
      key.replace(/\+\w{8}\+/, '+00000000+'),
    ],
    ['a note that is cut off', note.slice(0, 30), /is cut off, or is none/, key],
  ] as const)
    test(what, () => rejected({ checkpoint: text, closings }, given, sentence));
});
