import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Context, Service } from '../src/context.ts';
import type { Queries } from '../src/db/pool.ts';
import { type HotStatement, type Sql, sql } from '../src/db/sql.ts';
import { authenticate } from '../src/merchants/authenticate.ts';
import { flushCalls } from '../src/merchants/guessing.ts';
import { createKey, revokeKey } from '../src/merchants/keys.ts';
import { redeem } from '../src/redemptions/redeem.ts';
import { Refusal } from '../src/refusal.ts';
import { newRingKey } from '../src/secrets.ts';
import { activate } from '../src/vouchers/activate.ts';
import { balance } from '../src/vouchers/balance.ts';
import { beginRotation } from '../src/vouchers/rotate.ts';
import { asOperator, testService } from './harness.ts';
import { Till, UNKNOWN, withWrongPin } from './till.ts';

/**
 * What must not be told apart is found out by the same work: the same statements in the same order, and each of them
 * waits for the disk or does not. How long it takes, `npm run bench:timing` measures.
 */

/** The service with a list of what it asks of the database, and whether that left something to be written to the log. */
function watch(service: Service) {
  const work: string[] = [];
  const seen = async <Row>(name: string, statement: Sql): Promise<Row[]> =>
    service.db.transaction(async (tx: Queries) => {
      const rows = await tx.query<Row>(statement);
      const [row] = await tx.query<{ wrote: boolean }>(
        sql`select pg_current_xact_id_if_assigned() is not null as wrote`,
      );
      work.push(`${name}: ${row?.wrote ? 'writes' : 'reads'}`);
      return rows;
    });
  const db: Service['db'] = {
    ...service.db,
    query: (statement) => seen(statement.text.trim().split(/\s+/).slice(0, 4).join(' '), statement),
    hot: ({ name, text }: HotStatement, values) => seen(name, { text, values }),
  };
  return {
    service: { ...service, db },
    /** The work that a call is refused with, and the code. */
    async of(call: () => Promise<unknown>): Promise<{ code: string; work: string[] }> {
      work.length = 0;
      const code = await call().then(
        () => assert.fail('it was not refused'),
        (error: unknown) => (error instanceof Refusal ? error.code : Promise.reject(error)),
      );
      return { code, work: [...work] };
    },
  };
}

/** An opaque merchant with a voucher, and the operations that take a code and a PIN. */
async function open(t: TestContext) {
  const till = await Till.open(t, { opaque: true });
  const voucher = await till.voucher();
  const operations = (context: Context) => ({
    balance: (asked: typeof voucher) => () => balance(context, asked),
    redeem: (asked: typeof voucher) => () => redeem(context, { ...asked, amount: 1, reference: 'guess' }),
    activate: (asked: typeof voucher) => () => activate(context, { voucher: { code: asked.code, pin: asked.pin } }),
  });
  return { till, voucher, operations };
}

test('an unknown code and a wrong PIN are the same work for an opaque merchant', async (t) => {
  const { till, voucher, operations } = await open(t);
  const { service, of } = watch(till.testService.service);
  const { context } = await authenticate(service, till.merchant.authorization);
  // Calls are counted a moment later, in the middle of anything.
  await flushCalls(service);
  for (const [name, ask] of Object.entries(operations(context))) {
    const unknown = await of(ask({ ...UNKNOWN, code: '199999999999' }));
    assert.deepEqual(await of(ask(withWrongPin(voucher))), unknown, name);
    assert.equal(unknown.code, '14');
    // The statement that decides writes, and so does the one that counts the guess.
    assert.deepEqual(unknown.work.filter((each) => each.endsWith('writes')).length, 2, `${name}: ${unknown.work}`);
  }
});

test('the same while the key ring is rotated, whichever key the voucher is looked up by', async (t) => {
  const { till, voucher, operations } = await open(t);
  const given = await testService(t, { ...till.testService, keys: `${newRingKey()},${till.testService.keys}` });
  await beginRotation(asOperator(given.service), undefined);
  const { service, of } = watch(given.service);
  const { context } = await authenticate(service, till.merchant.authorization);
  // Calls are counted a moment later, in the middle of anything.
  await flushCalls(service);
  // Looked up by the older key, since nothing has been sealed anew, and made under the newer one.
  const asked = {
    method: 'POST',
    path: '/api/v2/vouchers',
    body: { reference: 'newer', quantity: 1, value: 5 },
  } as const;
  const [newer] = (await given.request(till.merchant, asked)).data.vouchers;
  for (const [name, ask] of Object.entries(operations(context))) {
    const unknown = await of(ask({ ...UNKNOWN, code: '199999999999' }));
    assert.deepEqual(await of(ask(withWrongPin(voucher))), unknown, name);
    assert.deepEqual(await of(ask(withWrongPin(newer))), unknown, name);
    assert.equal(unknown.work.filter((each) => each.startsWith(name)).length, 2, `${name}: ${unknown.work}`);
  }
});

test('a wrong PIN of a voucher tells nothing of its state', async (t) => {
  const { till, voucher, operations } = await open(t);
  const blocked = await till.voucher();
  const { serialNumber } = blocked;
  const { service, of } = watch(till.testService.service);
  await service.db.query(sql`update vouchers set blocked_at = now() where serial_number = ${serialNumber}`);
  const { context } = await authenticate(service, till.merchant.authorization);
  // Calls are counted a moment later, in the middle of anything.
  await flushCalls(service);
  for (const [name, ask] of Object.entries(operations(context))) {
    assert.deepEqual(await of(ask(withWrongPin(blocked))), await of(ask(withWrongPin(voucher))), name);
  }
});

test('a wrong secret, and an unknown, revoked or expired key are one look-up each, however long ago the key was used', async (t) => {
  const till = await Till.open(t);
  const { clock, service: plain } = till.testService;
  const { keyId, secret, id } = till.merchant;
  const operator = asOperator(plain);
  const revoked = await createKey(operator, id);
  await revokeKey(operator, revoked.keyId, id);
  const expired = await createKey(operator, id, { expiresAt: new Date(clock.now().getTime() + 1_000) });
  const { service, of } = watch(plain);
  const basic = (user: string, password: string) => `Basic ${btoa(`${user}:${password}`)}`;
  await authenticate(service, basic(expired.keyId, expired.secret));
  clock.advance(2_000);
  for (const sinceMs of [0, 200, 500, 5_000]) {
    // Known long enough to be looked up again, and that is over then.
    clock.advance(5_000);
    await authenticate(service, basic(keyId, secret));
    await flushCalls(service);
    clock.advance(sinceMs);
    const unknown = await of(() => authenticate(service, basic('key_xxxxxxxxxxxxxxxx', secret)));
    assert.deepEqual(unknown, { code: '01', work: ['find-keys: reads'] });
    for (const header of [
      basic(keyId, revoked.secret),
      basic(revoked.keyId, revoked.secret),
      basic(expired.keyId, secret),
    ]) {
      assert.deepEqual(await of(() => authenticate(service, header)), unknown);
    }
  }
  // To a process that has not met it yet.
  const other = watch(plain);
  const late = await other.of(() => authenticate(other.service, basic(expired.keyId, expired.secret)));
  assert.deepEqual(late, { code: '01', work: ['find-keys: reads'] });
});
