import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { before, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { slotOfSerial } from '../../src/db/buckets.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { balance } from '../../src/vouchers/balance.ts';
import { differing } from '../support/differing.ts';
import { fileOf } from '../support/folder.ts';
import { codesOf, csvOf } from '../support/imports.ts';
import { makeVouchers, Operator } from '../support/operator.ts';
import { asOwner } from '../support/owner.ts';
import { typed } from '../support/scrip.ts';

/** `scrip import vouchers`: vouchers of another system. */

const operator = Operator.ofTests();
let merchant: { id: string; keyId: string; secret: string };
let context: Context;

before(async () => {
  merchant = await operator.json`merchant create --name Issuer --float 1000`;
  context = await operator.enter(merchant);
});

const imported = (file: string, ...more: string[]) =>
  operator.json`import vouchers ${file} --merchant ${merchant.id} ${more}`;

/** Runs an import that is refused, and returns its report. */
async function refused(file: string, ...more: string[]) {
  const { status, out } =
    await operator.run`import vouchers ${file} --merchant ${merchant.id} --json ${more}`;
  assert.equal(status, 1);
  return JSON.parse(out);
}

/** The line and the field of each error. */
const placesOf = ({ errors }: { errors: readonly { line: number; field: string }[] }) =>
  errors.map(({ line, field }) => [line, field]);

async function rowsOf<Row>(text: string): Promise<Row[]> {
  return asOwner<Row>(operator.testService.url, text);
}

const countVouchers = async () =>
  (await rowsOf<{ count: bigint }>('select count(*) from scrip.vouchers'))[0]?.count as bigint;

const isProven = async () => assert.deepEqual(await differing(operator.testService.service), []);

test('an imported voucher can be redeemed, and has one transaction for its balance', async (t) => {
  const [first = '', second = ''] = codesOf(2);
  const file = await fileOf(t, 'cards.csv', csvOf([first, second]));
  const checked = await imported(file, '--dry-run');
  assert.deepEqual(
    [checked.ok, checked.state, checked.vouchers, checked.totals],
    [true, 'checked', 2, [{ product: 'DEFAULT', currency: 'USD', vouchers: 2, amount: '20.00' }]],
  );
  await assert.rejects(balance(context, { code: first, pin: '0000' }), { code: '14' });

  assert.equal((await imported(file)).state, 'imported');
  const now = await operator.enter(merchant);
  await redeem(now, { code: second, pin: '0001', amount: 2.5 });
  const { serialNumber, transactions, usable, value } = await balance(now, { code: second, pin: '0001' });
  assert.deepEqual([usable.minor, value?.minor], [750n, 1000n]);
  assert.deepEqual(
    transactions.map(({ type, amount, reference }) => [type, amount.minor, reference]),
    [
      ['ACTIVATION', 1000n, 'card-1'],
      ['REDEMPTION', 250n, null],
    ],
  );
  assert.equal(slotOfSerial(serialNumber), operator.testService.service.keys.slotOf(second));
  const [entry] = await rowsOf<{ kind: string; debit: string; amount: bigint }>(
    `
      select j.kind, a.kind as debit, j.amount_minor as amount from scrip.journal j join scrip.accounts a
        on a.id = j.debit_account
     where j.serial_number = ${serialNumber} and j.kind = 'IMPORT'`,
  );
  assert.deepEqual(entry, { kind: 'IMPORT', debit: 'FUNDING', amount: 1000n });
  await isProven();
});

test('imported vouchers that expire on different days are swept from the first of these days on', async (t) => {
  const [first = '', second = ''] = codesOf(2);
  const rows = [`${first},1234,5.00,2035-06-30`, `${second},1234,5.00,2034-01-31`];
  const file = await fileOf(t, 'days.csv', `code,pin,balance,expiry\r\n${rows.join('\r\n')}\r\n`);
  await imported(file, '--reference', 'days');
  const [batch] = await rowsOf<{ expiresAt: Date; first: Date }>(`
    select b.expires_at as "expiresAt", min(v.expires_at) as first
    from scrip.batches b join scrip.vouchers v on v.batch_id = b.id
    where b.id = (select max(id) from scrip.batches) group by b.id`);
  assert.match(batch?.first.toISOString() ?? '', /^2034-01-31/);
  assert.deepEqual(batch?.expiresAt, batch?.first);
});

test('importing a file again has no effect, and another file under its reference fails', async (t) => {
  const file = await fileOf(t, 'once.csv', csvOf(codesOf(3)));
  await imported(file, '--reference', 'takeover');
  const before = await countVouchers();
  assert.equal((await imported(file, '--reference', 'takeover')).state, 'replayed');
  const other = await fileOf(t, 'other.csv', csvOf(codesOf(3)));
  await operator.fails(
    /reference was used/,
    ...typed`import vouchers ${other} --merchant ${merchant.id} --reference takeover`,
  );
  assert.equal(await countVouchers(), before);
});

test('invalid fields are reported by line and name, without values, and nothing is imported', async (t) => {
  const [good = '', twice = '', bad = ''] = codesOf(3);
  const rows = [
    'code,pin,balance,expiry,product,reference',
    `${good},1234,5.00,2035-01-01,,`,
    '1234567890,1234,5.00,2035-01-01,,',
    `${codesOf(1)},123,5.00,2035-01-01,,`,
    `${codesOf(1)},1234,"1,50",2035-01-01,,`,
    `${codesOf(1)},1234,1.505,2035-01-01,,`,
    `${codesOf(1)},1234,0,2035-01-01,,`,
    `${codesOf(1)},1234,5.00,2035-02-30,,`,
    `${codesOf(1)},1234,5.00,2020-01-01,,`,
    `${codesOf(1)},1234,5.00,2035-01-01,NONE,`,
    `${twice},1234,5.00,2035-01-01,,`,
    `${twice},4321,6.00,2035-01-01,,`,
    `${codesOf(1)},1234,5,00,2035-01-01,,`,
    `${bad},12,5.00,2035-01-01,,`,
    `${bad},1234,5.00,2035-01-01,,`,
  ];
  const file = await fileOf(t, 'wrong.csv', rows.join('\n'));
  const before = await countVouchers();
  const report = await refused(file);
  assert.deepEqual(placesOf(report), [
    [3, 'code'],
    [4, 'pin'],
    [5, 'balance'],
    [6, 'balance'],
    [7, 'balance'],
    [8, 'expiry'],
    [9, 'expiry'],
    [10, 'product'],
    [12, 'code'],
    [13, 'row'],
    [14, 'pin'],
    [15, 'code'],
  ]);
  const text = JSON.stringify(report);
  assert.ok(!text.includes(twice) && !text.includes('1234567890'));
  assert.match(report.errors[2].message, /comma/);
  assert.equal(await countVouchers(), before);
});

test('a file with the code of an existing voucher is refused', async (t) => {
  const [made] = await makeVouchers(context, 'own', 1);
  const [fresh = ''] = codesOf(1);
  const report = await refused(await fileOf(t, 'taken.csv', csvOf([fresh, made.code])));
  assert.deepEqual(placesOf(report), [[3, 'code']]);
  assert.match(report.errors[0].message, /exists already/);
});

test('a wrong encoding, a wrong header and invalid CSV are refused with their line', async (t) => {
  const [code = ''] = codesOf(1);
  const latin = Buffer.from(
    `code,pin,balance,expiry,reference\n${code},1234,5.00,2035-01-01,Käse\n`,
    'latin1',
  );
  const wide = Buffer.from(`\ufeff${csvOf([code])}`, 'utf16le');
  const head = 'code,pin,balance,expiry\n';
  const cases = [
    [latin, /line 2: the file is not in UTF-8/],
    [wide, /line 1: the file is in UTF-16/],
    ['code;pin;balance\n', /line 1: column 1 has an unknown name/],
    ['code,pin\n', /line 1: the column balance is missing/],
    [`${head}"${code},1234,5.00,2035-01-01\n`, /line 2: the file ends within quotation marks/],
    [`${head}${code},12"34,5.00,2035-01-01\n`, /line 2: a quotation mark stands within a field/],
    [`${head}${code},"12"34,5.00,2035-01-01\n`, /line 2: after a quotation mark that ends a field/],
    [`${head}${'1'.repeat(20_000)}\n`, /line 2: a row is longer than 10000 characters/],
    ['\n\n', /line 1: the file is empty/],
    ['', /line 1: the file is empty/],
  ] as const;
  for (const [content, expected] of cases) {
    const file = await fileOf(t, 'bad.csv', content);
    await operator.fails(expected, ...typed`import vouchers ${file} --merchant ${merchant.id}`);
  }
});

test('what is no ordinary file is refused: it could be read once, or has no end', async () => {
  for (const file of ['/dev/zero', tmpdir()])
    await operator.fails(
      /is no ordinary file$/m,
      ...typed`import vouchers ${file} --format csv --merchant ${merchant.id}`,
    );
});

test('codes in other formats are imported only by --codes and --missing-pin', async (t) => {
  const [long = '', short = '', plain = ''] = codesOf(3);
  const split = await fileOf(t, 'split.csv', `code,balance,expiry\n${long}9876,3,2035-01-01\n`);
  assert.equal((await refused(split)).errors[0].field, 'code');
  await imported(split, '--codes', 'split');
  assert.equal((await balance(context, { code: long, pin: '9876' })).usable.minor, 300n);

  const prefixed = await fileOf(t, 'short.csv', `code,pin,balance\n${short.slice(2)},1111,3\n`);
  await imported(prefixed, '--codes', `prefix:${short.slice(0, 2)}`, '--expiry', '2035-01-01');
  assert.equal((await balance(context, { code: short, pin: '1111' })).usable.minor, 300n);

  const bare = await fileOf(
    t,
    'bare.ndjson',
    `${JSON.stringify({ code: plain, balance: 3.25, expiry: '2035-01-01' })}\n`,
  );
  assert.equal((await refused(bare)).errors[0].field, 'pin');
  await imported(bare, '--missing-pin', '0000');
  assert.equal((await balance(context, { code: plain, pin: '0000' })).usable.minor, 325n);
  await isProven();
});

test('a code that is a number in NDJSON is refused, since it would lose leading zeros', async (t) => {
  const [code = ''] = codesOf(1);
  const lines = [`{"code":${code},"pin":"1234","balance":1}`, '[1]', `{"code":"${code}","secret":1}`, 'x'];
  const report = await refused(await fileOf(t, 'numbers.ndjson', lines.join('\n')), '--expiry', '2035-01-01');
  assert.deepEqual(placesOf(report), [
    [1, 'code'],
    [2, 'row'],
    [3, 'row'],
    [4, 'row'],
  ]);
});

test('an NDJSON row with a key twice, or with a number that would be rounded, is refused', async (t) => {
  const [code = ''] = codesOf(1);
  const lines = [
    '"balance":1,"balance":2',
    '"balance":1,"b\\u0061lance":2',
    '"balance":1.0000000000000000001',
  ].map((balance) => `{"code":"${code}","pin":"1234",${balance}}`);
  const report = await refused(await fileOf(t, 'twice.ndjson', lines.join('\n')), '--expiry', '2035-01-01');
  assert.deepEqual(placesOf(report), [
    [1, 'row'],
    [2, 'row'],
    [3, 'balance'],
  ]);
});

test("--paid-from float charges the issuer's float, and imports nothing when it is too small", async (t) => {
  const poor = await operator.json`merchant create --name Poor --float 25`;
  const few = await fileOf(t, 'few.csv', csvOf(codesOf(2)));
  const many = await fileOf(t, 'many.csv', csvOf(codesOf(3)));
  const args = ['--merchant', poor.id, '--paid-from', 'float'];
  await operator.json`import vouchers ${few} ${args}`;
  assert.deepEqual(await operator.json`float show --merchant ${poor.id}`.then(([float]) => float.balance), 5);
  const { status, out } = await operator.run`import vouchers ${many} ${args} --json`;
  assert.equal(status, 1);
  assert.match(JSON.parse(out).errors[0].message, /float in USD/);
  const none = await operator.json`merchant create --name None`;
  const without = await operator.run`import vouchers ${many} --merchant ${none.id} --paid-from float --json`;
  assert.equal(without.status, 1);
  assert.match(JSON.parse(without.out).errors[0].message, /float in USD/);
  await isProven();
});

test('an import that is killed resumes where it stopped, and imports each voucher once', async (t) => {
  const codes = codesOf(30_000);
  const file = await fileOf(t, 'large.csv', csvOf(codes));
  const args = ['import', 'vouchers', file, '--merchant', merchant.id, '--reference', 'large'];
  const chunks = async () =>
    Number(
      (
        await rowsOf<{ count: bigint }>(
          `
            select count(*) from scrip.voucher_import_chunks c join scrip.voucher_imports i
            on i.id = c.import_id where i.reference = 'large'`,
        )
      )[0]?.count,
    );
  const { child, ended } = operator.start(...args);
  const until = Date.now() + 120_000;
  while ((await chunks()) < 2 && Date.now() < until && child.exitCode === null);
  child.kill('SIGKILL');
  await ended;
  const written = await chunks();
  assert.ok(written >= 2 && written < 6, `killed after ${written} chunks of 6`);
  const report = await operator.json(...args);
  assert.deepEqual([report.state, report.vouchers, report.resumedAt], ['imported', 30_000, written * 5_000]);
  const [sums] = await rowsOf<{ rows: bigint; vouchers: bigint; amount: string }>(
    `
      select count(*) as rows, count(distinct j.serial_number) as vouchers,
        sum(amount_minor)::text as amount from scrip.journal j
     join scrip.vouchers v on v.serial_number = j.serial_number where j.kind = 'IMPORT'
       and j.reference like 'card-%' and v.value_minor = 1000
       and v.batch_id in (select batch_id from scrip.vouchers group by batch_id having count(*) = 5000)`,
  );
  assert.deepEqual(sums, { rows: 30_000n, vouchers: 30_000n, amount: '30000000' });
  await isProven();
  // The chunks of one import are not those of another.
  const few = await fileOf(t, 'few.csv', csvOf(codesOf(2)));
  await imported(few);
  const { state, resumedAt } = await imported(few);
  assert.deepEqual([state, resumedAt], ['replayed', 2]);
});
