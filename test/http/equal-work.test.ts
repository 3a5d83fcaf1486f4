import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { flushCalls } from '../../src/api-keys/guesses.ts';
import { apiKeys, createKey } from '../../src/api-keys/keys.ts';
import { type Context, createService, type Service } from '../../src/context.ts';
import type { Queries } from '../../src/db/pool.ts';
import { type HotStatement, type Sql, sql } from '../../src/db/sql.ts';
import { newRingKey } from '../../src/keyring/file.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { Refusal } from '../../src/refusal.ts';
import { beginRotation } from '../../src/rotation/rotate.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { balance } from '../../src/vouchers/balance.ts';
import { blockVoucher } from '../../src/vouchers/operate.ts';
import { asOperator, testService } from '../support/harness.ts';
import { Till, UNKNOWN, withWrongPin } from '../support/till.ts';

/**
 * Answers that must not be told apart cost the same work: the same statements in the same order, with the
 * same waits for the disk. `npm run bench -- timing` measures how long they take.
 */

/** The tables of declines, which a timer writes up to a second after a call: during this one or another. */
const WRITTEN_LATER = /\b(declines|decline_counts)\b/;

/** The service with a list of its statements, each with whether it wrote to the write-ahead log. */
function recorded(service: Service) {
  const work: string[] = [];
  const record = async <Row>(name: string, statement: Sql): Promise<Row[]> =>
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
    query: (statement) =>
      WRITTEN_LATER.test(statement.text)
        ? service.db.query(statement)
        : record(statement.text.trim().split(/\s+/).slice(0, 4).join(' '), statement),
    hot: ({ name, text }: HotStatement, values) => record(name, { text, values }),
  };
  return {
    service: createService({ ...service, db }),
    /** The code with which a call is refused, and its work. */
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

/** The statement of each operation that checks the PIN. */
const DECIDING: Readonly<Record<string, string>> = {
  balance: 'check-pins',
  redeem: 'redeem',
  activate: 'activate',
};

/** An opaque merchant with a voucher, and the operations that take a code and a PIN. */
async function open(t: TestContext) {
  const till = await Till.open(t, { opaque: true });
  const voucher = await till.voucher();
  const operations = (context: Context) => ({
    balance: (sent: typeof voucher) => () => balance(context, sent),
    redeem: (sent: typeof voucher) => () => redeem(context, { ...sent, amount: 1, reference: 'guess' }),
    activate: (sent: typeof voucher) => () =>
      activate(context, { voucher: { code: sent.code, pin: sent.pin } }),
  });
  return { till, voucher, operations };
}

test('an unknown code and a wrong PIN run the same statements for an opaque merchant', async (t) => {
  const { till, voucher, operations } = await open(t);
  const { service, of } = recorded(till.testService.service);
  const { context } = await authenticate(service, till.merchant.authorization);
  // Calls are counted a moment later, in the middle of anything.
  await flushCalls(service);
  for (const [name, ask] of Object.entries(operations(context))) {
    const unknown = await of(ask({ ...UNKNOWN, code: '199999999999' }));
    assert.deepEqual(await of(ask(withWrongPin(voucher))), unknown, name);
    assert.equal(unknown.code, '14');
    // The statement that decides writes, and so does the one that counts the guess.
    assert.deepEqual(
      unknown.work.filter((each) => each.endsWith('writes')).length,
      2,
      `${name}: ${unknown.work}`,
    );
  }
});

test('an unknown code and a wrong PIN run the same statements during a rotation', async (t) => {
  const { till, voucher, operations } = await open(t);
  const given = await testService(t, {
    ...till.testService,
    keys: `${newRingKey()},${till.testService.keys}`,
  });
  await beginRotation(asOperator(given.service), undefined);
  const { service, of } = recorded(given.service);
  const { context } = await authenticate(service, till.merchant.authorization);
  // Calls are counted a moment later, in the middle of anything.
  await flushCalls(service);
  // The first voucher is resolved by the older key, since nothing has been resealed; this one by the newer.
  const request = {
    method: 'POST',
    path: '/api/v2/vouchers',
    body: { reference: 'newer', quantity: 1, value: 5 },
  } as const;
  const [newer] = (await given.request(till.merchant, request)).data.vouchers;
  for (const [name, ask] of Object.entries(operations(context))) {
    const unknown = await of(ask({ ...UNKNOWN, code: '199999999999' }));
    assert.deepEqual(await of(ask(withWrongPin(voucher))), unknown, name);
    assert.deepEqual(await of(ask(withWrongPin(newer))), unknown, name);
    // Under each of the two keys.
    const decides = unknown.work.filter((each) => each === `${DECIDING[name]}: writes`);
    assert.equal(decides.length, 2, `${name}: ${unknown.work}`);
  }
});

test('a wrong PIN runs the same statements for a blocked voucher as for an active one', async (t) => {
  const { till, voucher, operations } = await open(t);
  const blocked = await till.voucher();
  await blockVoucher(asOperator(till.testService.service), BigInt(blocked.serialNumber));
  const { service, of } = recorded(till.testService.service);
  const { context } = await authenticate(service, till.merchant.authorization);
  // Calls are counted a moment later, in the middle of anything.
  await flushCalls(service);
  for (const [name, ask] of Object.entries(operations(context))) {
    assert.deepEqual(await of(ask(withWrongPin(blocked))), await of(ask(withWrongPin(voucher))), name);
  }
});

test('a wrong secret and an unknown, revoked or expired key run the same look-up', async (t) => {
  const till = await Till.open(t);
  const { clock, service: plain } = till.testService;
  const { keyId, secret, id } = till.merchant;
  const operator = asOperator(plain);
  const revoked = await createKey(operator, id);
  await apiKeys.revoke.run(operator, { keyId: revoked.keyId });
  const expired = await createKey(operator, id, { expiresAt: new Date(clock.now().getTime() + 1_000) });
  const { service, of } = recorded(plain);
  const basic = (user: string, password: string) => `Basic ${btoa(`${user}:${password}`)}`;
  await authenticate(service, basic(expired.keyId, expired.secret));
  clock.advance(2_000);
  for (const sinceMs of [0, 200, 500, 5_000]) {
    // Cached for so long that it is looked up again; the look-up ends here.
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
  // The same in a process that has not cached any key.
  const first = async (header: string) => {
    const other = recorded(plain);
    return other.of(() => authenticate(other.service, header));
  };
  const uncached = await first(basic('key_xxxxxxxxxxxxxxxx', secret));
  assert.deepEqual(uncached, { code: '01', work: ['changed-keys: reads', 'find-keys: reads'] });
  for (const { keyId: each, secret: own } of [expired, revoked])
    assert.deepEqual(await first(basic(each, own)), uncached);
});
