import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import { strFromU8, unzipSync } from 'fflate';
import { openOwner } from '../../src/db/pool.ts';
import type { AnyOperation } from '../../src/operation.ts';
import { perform } from '../../src/operations/perform.ts';
import { PORTAL_OPERATIONS } from '../../src/operations/portal.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import type { Principal } from '../../src/principal.ts';
import { isoDay } from '../../src/time.ts';
import { COMMAND_LINE } from '../support/harness.ts';
import { operatorApi } from '../support/operator.api.ts';
import { Operator } from '../support/operator.ts';
import { openScene, settledDay } from '../support/settlements.ts';
import { until } from '../support/until.ts';

/** The operations on the bank, on settlements and on the files of the books. */

const api = operatorApi();

const base64 = (text: string) => Buffer.from(text, 'latin1').toString('base64');

const MAPPING = {
  name: 'house',
  date: 'Day',
  dateFormat: 'YYYY-MM-DD',
  amount: 'Amount',
  decimal: '.',
  texts: ['Text'],
  entryReference: null,
  delimiter: ',',
  encoding: 'utf-8',
};

test('a bank statement is imported, matched and listed', async () => {
  const { id } = await api.testService.createMerchant();
  const topUp = { merchantId: String(id), amount: 12.5, reference: 'INV-2001' };
  const { transactionId } = (await api.post('/floats/top-up', topUp)).body;
  assert.equal((await api.post('/bank/accounts', { name: 'House', currency: 'USD', own: 5 })).status, 200);
  assert.equal((await api.post('/bank/mappings', MAPPING)).status, 200);
  const today = isoDay(Date.now());
  const file = base64(`Day,Text,Amount\n${today},for INV-2001,12.50\n${today},else,7.00\n`);
  const wanted = { account: 'House', format: 'csv', mapping: 'house', file };
  const shown = (await api.post('/bank/import', { ...wanted, dryRun: true })).body;
  assert.deepEqual([shown.ok, shown.state, shown.entries.length], [true, 'checked', 2]);
  assert.equal((await api.post('/bank/import', wanted)).body.state, 'imported');
  assert.equal((await api.post('/bank/import', wanted)).body.code, '94');
  const bad = { ...wanted, file: base64('Day,Text,Amount\n2026-02-31,x,1.00\n') };
  const [{ field, rule }] = (await api.post('/bank/import', bad)).body.errors;
  assert.deepEqual([field, rule], ['Day', 'day']);
  const [statement] = (await api.get('/bank/statements')).body.items;
  assert.deepEqual([statement.account, statement.entries, statement.closing], ['House', 2, null]);
  const matched = (await api.post('/bank/match', {})).body;
  assert.deepEqual([matched.exact.length, matched.exact[0].movement], [1, transactionId]);
  const [open, ...others] = (await api.get('/bank/entries?open=true')).body.items;
  assert.deepEqual([open.description, open.matched, others.length], ['else', 0, 0]);
  const { items } = (await api.get('/bank/entries?account=House&limit=1')).body;
  assert.equal(items.length, 1);
  const all = (await api.get('/bank/entries')).body.items;
  const paid = { settlement: null, root: null };
  const movement = { transactionId, kind: 'TOP_UP', reference: 'INV-2001', amount: 12.5, ...paid };
  assert.deepEqual(all.at(-1).movements, [movement]);
  assert.equal(
    (await api.post('/bank/matches', { entries: [open.id], movements: [transactionId] })).body.code,
    '13',
  );
  assert.equal((await api.post(`/bank/entries/${all.at(-1).id}/unmatch`, {})).status, 200);
  const left = (await api.get('/bank/movements?open=true')).body.items;
  assert.ok(left.some((each: { transactionId: string }) => each.transactionId === transactionId));
});

test('a file that someone else imports at the same moment is refused', async () => {
  assert.equal((await api.post('/bank/accounts', { name: 'Shared', currency: 'USD', own: 0 })).status, 200);
  assert.equal((await api.post('/bank/mappings', MAPPING)).status, 200);
  const file = base64('Day,Text,Amount\n2026-01-31,at once,1.00\n');
  const owner = await openOwner(api.testService.url);
  try {
    const run = (text: string) => owner.query<{ found: boolean }>({ text, values: [] });
    await run(`
begin;
insert into scrip.bank_files (digest, account, format, entries, imported_by, imported_at)
values (sha256(decode('${file}', 'base64')), 'Shared', 'csv', 1, 'other', now())`);
    const wanted = { account: 'Shared', format: 'csv', mapping: 'house', file };
    const refused = api.post('/bank/import', wanted);
    await until('the import waits for the other one', async () => {
      const [row] = await run(`
select bool_or(transactionid = pg_current_xact_id()::xid and not granted) as found from pg_locks`);
      return row?.found === true;
    });
    await run('commit');
    const { status, body } = await refused;
    assert.deepEqual([status, body.code], [409, '94']);
  } finally {
    await owner.close();
  }
});

test('a body that is too large is refused by its length, or while its chunks are read', async () => {
  const file = 'A'.repeat(4 * 1024 * 1024);
  const large = await api.post('/bank/import', { account: 'House', format: 'camt053', file });
  assert.deepEqual([large.status, large.body.code], [413, '98']);
  assert.match(large.body.errors[0].message, /3072 KiB/);
  const authorization = `Bearer ${await api.token(['owner'])}`;
  const status = await new Promise((resolve, reject) => {
    const headers = { authorization, 'content-type': 'application/json' };
    const sent = request(`${api.testService.baseUrl}/operator/v1/merchants`, { method: 'POST', headers });
    sent.on('error', reject);
    sent.on('response', (response) => resolve(response.resume().statusCode));
    sent.write(`{"name":"${'a'.repeat(70_000)}`);
    sent.end('"}');
  });
  assert.equal(status, 413);
});

test('a settlement goes from terms and a draft to documents, the payout file and disputes', async (t) => {
  const scene = await openScene(t);
  const { service } = scene.ledger.started;
  const ask = async (name: string, input: object, merchant?: number) => {
    const table = merchant === undefined ? OPERATIONS : PORTAL_OPERATIONS;
    const operation = table.find((each) => each.name === name) as AnyOperation;
    const owner = { kind: 'token', id: '1', roles: ['owner'], merchantId: merchant } as const;
    const principal = merchant === undefined ? COMMAND_LINE : { ...COMMAND_LINE, ...owner };
    // biome-ignore lint/suspicious/noExplicitAny: what an operation answers is what the test is about.
    return (await perform(operation, { service, principal: principal as Principal, input })).output as any;
  };
  await settledDay(scene);
  const merchantId = String(scene.shop.merchant.id);
  const [terms] = (await ask('settlement.list-terms', { merchantId })).items;
  assert.deepEqual([terms.commission, terms.vat, terms.minPayout, terms.last4], [2.5, 20, 0, '3000']);
  const later = { merchantId, from: '2026-04-01', commission: 1.25, product: 'DEFAULT' };
  assert.equal((await ask('settlement.terms', later)).commission, 1.25);
  await assert.rejects(
    ask('settlement.terms', { ...later, period: 'day' }),
    /period belongs to the terms of/,
  );
  await assert.rejects(
    ask('settlement.terms', { ...later, commission: 1.23456 }),
    /commission has up to four/,
  );
  await assert.rejects(
    ask('settlement.terms', { ...later, product: null, minPayout: 1e-5 }),
    /minPayout has up to four/,
  );
  await refuseCountries(ask);
  const [draft] = (await ask('settlement.draft', {})).items;
  await assert.rejects(ask('settlement.document', { id: draft.id, format: 'pdf' }), /is a draft/);
  const { id: shop } = scene.shop.merchant;
  await assert.rejects(ask('settlement.show', { id: draft.id }, shop), { code: 'not-found' });
  assert.deepEqual((await ask('settlement.list', {}, shop)).items, []);
  await ask('settlement.approve', { id: draft.id });
  const { id: stranger } = scene.issuer.merchant;
  for (const name of ['settlement.show', 'settlement.document', 'settlement.proof', 'settlement.dispute']) {
    const input = {
      id: draft.id,
      ...(name === 'settlement.document' && { format: 'csv' }),
      ...(name === 'settlement.dispute' && { comment: 'x' }),
    };
    await assert.rejects(ask(name, input, stranger), { code: 'not-found' }, name);
  }
  assert.deepEqual((await ask('settlement.list', {}, stranger)).items, []);
  assert.equal((await ask('settlement.list', {}, shop)).items[0].id, draft.id);
  assert.equal((await ask('settlement.show', { id: draft.id }, shop)).state, 'APPROVED');
  const pdf = await ask('settlement.document', { id: draft.id, format: 'pdf' });
  assert.deepEqual(
    [pdf.name, pdf.content.toString('latin1', 0, 5)],
    [`settlement-${merchantId}-2026-0001.pdf`, '%PDF-'],
  );
  const payer = { payerName: 'Operator Ltd', payerIban: 'DE89 3704 0044 0532 0130 00', due: '2026-03-31' };
  const accounts = `merchantId,name,iban,bic\n${merchantId},Shop,DE89370400440532013000,\n`;
  const { content } = await ask('settlement.file', { format: 'pain001', accounts, ...payer });
  assert.match(content, /<InstdAmt Ccy="USD">97\.10<\/InstdAmt>/);
  const wrong = { format: 'csv', accounts, ...payer, payerIban: 'DE00' };
  await assert.rejects(ask('settlement.file', wrong), /payerIban is not an IBAN/);
  const made = await ask('settlement.dispute', { id: draft.id, comment: 'one is missing' }, shop);
  assert.deepEqual((await ask('settlement.disputes', {}, stranger)).items, []);
  const [open] = (await ask('settlement.disputes', { open: true })).items;
  assert.deepEqual([open.id, open.settlementId, open.merchantId], [made.id, draft.id, merchantId]);
  await ask('settlement.answer', { id: made.id, comment: 'it is in the next one' });
  assert.deepEqual((await ask('settlement.disputes', { open: true })).items, []);
  await readFiles(ask, merchantId, shop);
  await compareFormats(ask, Operator.at(scene.ledger.started, {}), merchantId);
});

// biome-ignore lint/suspicious/noExplicitAny: as above.
type Ask = (name: string, input: object, merchant?: number) => Promise<any>;

/** The API and the command line answer a report alike. */
async function compareFormats(ask: Ask, cli: Operator, merchantId: string): Promise<void> {
  const day = ['--from', '2026-03-01', '--to', '2026-03-02'] as const;
  const wanted = { report: 'R1', breakdown: 'merchant', from: day[1], to: day[3] };
  const answered = JSON.parse(JSON.stringify(await ask('books.report', wanted)));
  assert.deepEqual(await cli.json('books', 'report', 'R1', '--breakdown', 'merchant', ...day), answered);
  const own = answered.tables[0].rows.find((row: { merchantId: string }) => row.merchantId === merchantId);
  assert.equal(own.settlements, '97.10');
  await cli.fails(/belongs to --csv/, 'books', 'report', 'R1', ...day, '--european');
}

async function refuseCountries(ask: Ask): Promise<void> {
  const vat = { product: 'DEFAULT', from: '2026-04-01', treatment: 'multi' };
  for (const country of ['EU', 'UK', 'XX'])
    await assert.rejects(ask('books.vat', { ...vat, country }), /country is not the code of a country/);
  assert.equal((await ask('books.vat', { ...vat, country: 'GB' })).country, 'GB');
}

/** The sheet of a workbook, as XML. */
async function cellsOf(pieces: AsyncIterable<Buffer>): Promise<string> {
  const files = unzipSync(Buffer.concat(await Array.fromAsync(pieces)));
  return strFromU8(files['xl/worksheets/sheet1.xml'] ?? new Uint8Array());
}

async function readFiles(ask: Ask, merchantId: string, shop: number): Promise<void> {
  const day = { from: '2026-03-01', to: '2026-03-02' };
  assert.match((await ask('books.report-csv', { report: 'R1', ...day })).content, /^report,from,to,/);
  await assert.rejects(ask('books.report-csv', { report: 'R8', ...day }), /R8 is of one merchant/);
  const lines = await textOf((await ask('books.report-csv', { report: 'R8', merchantId, ...day })).content);
  assert.match(lines, /,REDEMPTION,.*,40\.10,USD,sale 2,/);
  const cells = cellsOf(
    (await ask('books.report-csv', { report: 'R8', merchantId, format: 'xlsx', ...day })).content,
  );
  assert.match(
    await cells,
    /r="E3" t="inlineStr"><is><t xml:space="preserve">\d+<\/t>.* s="6"><v>40\.10<\/v>.*>sale 2</,
  );
  assert.match(
    await cellsOf((await ask('books.report-csv', { report: 'R1', format: 'xlsx', ...day })).content),
    />from<.* s="2"><v>46082<\/v>.* s="6"><v>-?\d+\.\d\d<\/v>/,
  );
  await assert.rejects(
    ask('books.report-csv', { report: 'R1', format: 'xlsx', european: true, ...day }),
    /european belongs to CSV/,
  );
  await assert.rejects(
    ask('books.report-csv', { report: 'R8', merchantId, breakdown: 'product', ...day }),
    /R8 is not broken down by product/,
  );
  assert.match(await textOf((await ask('books.export', { format: 'csv', ...day })).content), /REDEMPTION/);
  for (const [format, option] of [
    ['csv', 'rows'],
    ['beancount', 'european'],
  ] as const)
    await assert.rejects(ask('books.export', { format, [option]: true, ...day }), /belongs to/);
  const own = await ask('books.report', { report: 'R7', ...day }, shop);
  assert.deepEqual([own.report, own.tables.length], ['R7', 1]);
  await assert.rejects(ask('books.report', { report: 'R1', ...day }, shop), /report must be one of R6/);
  const open2 = await ask('books.export', { format: 'csv', from: '2026-03-01', to: '2026-03-05' });
  await assert.rejects(textOf(open2.content), /2026-03-02 is not closed/);
}

async function textOf(content: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const piece of content) text += piece;
  return text;
}

test('the open bank entries are found among thousands of matched ones, page by page', async () => {
  const { db } = api.testService.service;
  const open = [6_500, 8_000, 11_001];
  await db.query({
    text: `
      insert into bank_entries (id, file_id, account, entry_reference, booked_on, amount_minor, description,
        matched_minor)
      select n, (select min(id) from bank_files), 'House', 'many ' || n, '2026-01-31', 100, 'many',
        case when n = any ($1::integer[]) then 0 else 100 end
      from generate_series(6000, 11001) n`,
    values: [open],
  });
  const path = '/bank/entries?account=House&open=true&limit=2';
  const first = (await api.get(path)).body;
  const ids = ({ items }: { items: { id: string }[] }) => items.map(({ id }) => id);
  assert.deepEqual(ids(first), ['11001', '8000']);
  const second = (await api.get(`${path}&cursor=${first.nextCursor}`)).body;
  assert.equal(ids(second)[0], '6500');
});

test('the rules of the books are set and listed', async () => {
  const set = (path: string, body: object) => api.post(`/books/${path}`, body);
  assert.equal((await set('accounts', { kind: 'FLOAT', number: '1600', product: 'DEFAULT' })).status, 200);
  assert.equal((await set('dormancy', { name: 'Delaware', months: 60, basis: 'last-use' })).status, 200);
  const vat = { product: 'DEFAULT', from: '2026-01-01', treatment: 'single', country: 'DE', rate: 19 };
  assert.equal((await set('vat', vat)).status, 200);
  assert.equal((await set('vat', vat)).body.code, '94');
  const rate = { product: 'DEFAULT', percent: 8.5, reason: 'three years of cohorts' };
  assert.equal((await set('breakage-rate', rate)).status, 200);
  assert.equal((await set('breakage-rate', { ...rate, percent: 101 })).body.errors[0].field, 'percent');
  const rules = (await api.get('/books/rules')).body;
  assert.deepEqual(rules.vat, [vat]);
  const [dormant] = rules.dormancy;
  assert.deepEqual(dormant, { ...dormant, name: 'Delaware', months: 60, basis: 'last-use', product: null });
  assert.deepEqual([rules.breakage[0].percent, rules.breakage[0].reason], [8.5, rate.reason]);
  const [account] = (await api.get('/books/accounts')).body.items;
  assert.deepEqual([account.kind, account.product, account.number], ['FLOAT', 'DEFAULT', '1600']);
});
