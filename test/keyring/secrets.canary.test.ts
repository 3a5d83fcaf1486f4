import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import type { Service } from '../../src/context.ts';
import { openOwner } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { buildServer } from '../../src/http/server.ts';
import { createLogger } from '../../src/log.ts';
import { type ApiRequest, DIALECTS, update, updateDetails, type Voucher } from '../support/dialects.ts';
import { startTestService, type TestService } from '../support/harness.ts';
import { UNKNOWN, withWrongPin } from '../support/till.ts';

/** Searches every row of the database and every line of the log for codes, PINs and secrets. */

let testService: TestService;
let owner: Awaited<ReturnType<typeof openOwner>>;
let app: FastifyInstance;
let merchant: Awaited<ReturnType<TestService['createMerchant']>>;
const log: string[] = [];
const vouchers: Voucher[] = [];
const REFERENCE = 'reference-that-no-line-holds';

/** The logger of the service at level trace, written into `log`. */
function listen(): Service['log'] {
  const lines = new Writable({
    write(chunk, _encoding, done) {
      log.push(String(chunk));
      done();
    },
  });
  return createLogger('trace', lines);
}

async function send({ method, path, body }: ApiRequest) {
  const headers = { authorization: merchant.authorization, 'content-type': 'application/json' };
  return app.inject({
    method,
    url: path,
    headers,
    ...(body !== undefined && { payload: JSON.stringify(body) }),
  });
}

before(async () => {
  testService = await startTestService();
  owner = await openOwner(testService.url);
  merchant = await testService.createMerchant({ permit: ['update-redemption'] });
  app = buildServer({ ...testService.service, log: listen() });
  for (const [at, dialect] of DIALECTS.entries()) {
    const made = (await send(dialect.generate(`${REFERENCE}-${at}`, 8, 25))).json().data
      .vouchers as Voucher[];
    vouchers.push(...made);
    const [first, second] = made as [Voucher, Voucher];
    for (const request of [
      dialect.download(`${REFERENCE}-${at}`),
      dialect.balance(first),
      dialect.redeem(first, 10, `${REFERENCE}-${at}`),
      dialect.redeem(first, 10, `${REFERENCE}-${at}`),
      dialect.redeem(first, 11, `${REFERENCE}-${at}`),
      dialect.redeem(withWrongPin(second), 1, 'x'),
      dialect.redeem({ ...second, code: UNKNOWN.code }, 1, 'x'),
      {
        ...dialect.redeem(second, 1, 'x'),
        body: { code: second.code, voucherCode: Number(second.code), pin: 5 },
      },
      dialect.activate(second, 'y'),
      dialect.lookup(`${REFERENCE}-${at}`),
      { method: 'GET', path: `${dialect.prefix}/transactions/${second.code}${second.pin}?pin=${second.pin}` },
      { method: 'GET', path: `${dialect.prefix}/${second.code}/${second.pin}` },
      update(`${REFERENCE}-${at}`, 5),
      updateDetails(`${REFERENCE}-${at}`),
      dialect.list(),
    ] as const)
      await send(request);
  }
  await breakSomething();
});

after(async () => {
  await app?.close();
  await owner?.close();
  await testService?.stop();
});

/**
 * Causes an error that is logged: the database refuses a statement that holds codes and PINs in their
 * stored form.
 */
async function breakSomething(): Promise<void> {
  const [first] = vouchers as [Voucher];
  await owner.query(
    sql`alter table scrip.journal add constraint broken check (amount_minor <> 777) not valid`,
  );
  for (const dialect of DIALECTS) {
    const answer = await send(dialect.redeem(first, 7.77, `${REFERENCE} that breaks`));
    assert.deepEqual([answer.statusCode, answer.json().statusCode], [500, '96']);
  }
  await owner.query(sql`alter table scrip.journal drop constraint broken`);
}

/** The encodings of a text that a column or a line could hold. */
function spellings(text: string): string[] {
  const bytes = Buffer.from(text);
  return [text, bytes.toString('hex'), bytes.toString('base64'), bytes.toString('base64url')];
}

function canaries(): string[] {
  const { secret, authorization } = merchant;
  return [
    ...vouchers.flatMap(({ code, pin }) => [...spellings(code), ...spellings(code + pin)]),
    ...spellings(secret),
    authorization,
    authorization.slice('Basic '.length),
  ];
}

/** Every row of every table that the service writes, as JSON. */
async function allRows(): Promise<{ table: string; row: Record<string, unknown> }[]> {
  type Table = { schema: string; name: string };
  const tables = await owner.query<Table>(
    sql`select table_schema as schema, table_name as name from information_schema.tables
      where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`,
  );
  const found = [];
  for (const { schema, name } of tables) {
    const text = `select to_jsonb(t) as row from "${schema}"."${name}" t`;
    const rows = await owner.query<{ row: Record<string, unknown> }>({ text, values: [] });
    found.push(...rows.map(({ row }) => ({ table: `${schema}.${name}`, row })));
  }
  return found;
}

describe('codes, PINs and secrets', () => {
  test('are in no row of any table', async () => {
    const rows = await allRows();
    const tables = new Set(rows.map(({ table }) => table));
    for (const table of ['scrip.vouchers', 'scrip.journal', 'scrip.api_keys', 'scrip.batches'])
      assert.ok(tables.has(table), table);
    const pins = new Set(vouchers.map(({ pin }) => pin));
    for (const { table, row } of rows) {
      const text = JSON.stringify(row);
      for (const canary of canaries()) assert.ok(!text.includes(canary), `${table} holds ${canary}`);
      for (const [column, value] of Object.entries(row))
        assert.ok(typeof value !== 'string' || !pins.has(value), `${table}.${column} is a PIN`);
    }
  });

  test('are in no line of the log, and neither are references', () => {
    const text = log.join('');
    assert.ok(log.length > 30);
    assert.ok(text.includes('a request failed'));
    for (const canary of canaries()) assert.ok(!text.includes(canary), `the log holds ${canary}`);
    assert.deepEqual(
      log.filter((line) => line.includes(REFERENCE)),
      [],
    );
    for (const { pin } of vouchers) {
      for (const spelling of [`"${pin}"`, `pin=${pin}`, `/${pin}`])
        assert.ok(!text.includes(spelling), spelling);
    }
  });

  test('are stored as different values for each voucher, even if they are equal', async () => {
    const rows = (await allRows()).filter(({ table }) => table === 'scrip.vouchers').map(({ row }) => row);
    assert.equal(rows.length, vouchers.length);
    for (const column of ['code_key', 'pin_key', 'sealed'])
      assert.equal(new Set(rows.map((row) => row[column])).size, vouchers.length);
  });
});
