import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { apiKeys } from '../../src/api-keys/keys.ts';
import { createService } from '../../src/context.ts';
import type { HotStatement } from '../../src/db/sql.ts';
import type { Refusal } from '../../src/refusal.ts';
import { asOperator, basic, startTestService, type TestService } from '../support/harness.ts';

let testService: TestService;

before(async () => {
  testService = await startTestService();
});

after(async () => {
  await testService?.stop();
});

const refusal = (code: string) => (error: unknown) => (error as Refusal).code === code;

/** The service of a new process: its cache is empty, its clock stands, and its look-ups are counted. */
function startProcess() {
  const { service } = testService;
  const startedAt = Date.now();
  const state = {
    aheadMs: 0,
    lookups: [] as string[],
    gate: Promise.resolve(),
    broken: false,
    transactionsAhead: 0n,
  };
  const process = createService({
    ...service,
    clock: () => new Date(startedAt + state.aheadMs),
    db: {
      ...service.db,
      async hot<Row>(statement: HotStatement, values: readonly unknown[]) {
        state.lookups.push(String(values[0]));
        await state.gate;
        if (state.broken) throw Object.assign(new Error('no database'), { code: 'ECONNREFUSED' });
        const rows = await service.db.hot<Row & { horizon?: string }>(statement, values);
        return rows.map(({ horizon, ...row }) => ({
          ...row,
          ...(horizon !== undefined && { horizon: String(BigInt(horizon) + state.transactionsAhead) }),
        })) as Row[];
      },
    },
  });
  return { process, state };
}

describe('the key cache of a process', () => {
  test('answers repeated calls without a look-up each', async () => {
    const { keyId, secret } = await testService.createMerchant();
    const { process, state } = startProcess();
    for (let call = 0; call < 500; call++) await authenticate(process, basic(keyId, secret));
    // Even on a slow machine a call takes less than a second.
    assert.ok(state.lookups.length < 250);
  });

  test('looks a key up once for concurrent calls', async () => {
    const { keyId, secret } = await testService.createMerchant();
    const { process, state } = startProcess();
    const callers = await Promise.all(
      Array.from({ length: 200 }, () => authenticate(process, basic(keyId, secret))),
    );
    assert.equal(callers.length, 200);
    // One look-up for missed changes, and one for the key.
    assert.deepEqual(state.lookups, ['null', `{"${keyId}"}`]);
  });

  test('sees changes on another server, to which the tables were copied', async () => {
    const { keyId, secret } = await testService.createMerchant();
    const { process, state } = startProcess();
    state.transactionsAhead = 1_000_000n;
    await authenticate(process, basic(keyId, secret));
    state.transactionsAhead = 0n;
    await apiKeys.revoke.run(asOperator(testService.service), { keyId });
    state.aheadMs += 1_500;
    await assert.rejects(async () => authenticate(process, basic(keyId, secret)), refusal('01'));
  });

  test('is used during a refresh, unless the refresh takes too long', async () => {
    const { keyId, secret } = await testService.createMerchant();
    const { process, state } = startProcess();
    await authenticate(process, basic(keyId, secret));
    let open = () => {};
    state.gate = new Promise((resolve) => {
      open = resolve;
    });
    state.aheadMs += 500;
    await authenticate(process, basic(keyId, secret));
    state.aheadMs += 900;
    await apiKeys.revoke.run(asOperator(testService.service), { keyId });
    // The look-up under way was sent before the key was revoked, so it cannot admit a later call.
    const late = authenticate(process, basic(keyId, secret));
    open();
    await assert.rejects(late, refusal('01'));
  });

  test('expires after a second without the database, whose error is then thrown', async () => {
    const { keyId, secret } = await testService.createMerchant();
    const { process, state } = startProcess();
    await authenticate(process, basic(keyId, secret));
    state.broken = true;
    state.aheadMs += 500;
    await authenticate(process, basic(keyId, secret));
    state.aheadMs += 500;
    await assert.rejects(authenticate(process, basic(keyId, secret)), /no database/);
    state.broken = false;
    await authenticate(process, basic(keyId, secret));
  });
});

describe('credentials', () => {
  test('are refused with the same code and message, whatever is wrong with them', async () => {
    const { keyId, secret } = await testService.createMerchant();
    const { process } = startProcess();
    await authenticate(process, basic(keyId, secret));
    const encoded = btoa(`${keyId}:${secret}`);
    const wrong = [
      undefined,
      '',
      'Basic',
      'Basic ',
      `Bearer ${encoded}`,
      `Basic ${encoded}!`,
      `Basic ${btoa(keyId)}`,
      `Basic ${btoa(`:${secret}`)}`,
      basic(keyId, ''),
      basic(keyId, `${secret}x`),
      basic(keyId, secret.slice(1)),
      basic('key_thatIsUnknown000', secret),
      basic('key_short', secret),
      basic('a\0b', secret),
      basic("' or true --", secret),
      `Basic ${'QUJD'.repeat(10_000)}`,
    ];
    for (const header of wrong) {
      await assert.rejects(authenticate(process, header), (error: Refusal) => {
        assert.equal(error.code, '01');
        assert.equal(error.message, 'Unauthorized');
        return true;
      });
    }
  });

  test('may differ in case and spacing as HTTP allows', async () => {
    const { keyId, secret } = await testService.createMerchant();
    const { context } = await authenticate(testService.service, `bASIC   ${btoa(`${keyId}:${secret}`)}`);
    assert.equal(context.keyId, keyId);
  });

  test('cost one look-up if they are wrong, whether or not the key exists', async () => {
    const { keyId, secret } = await testService.createMerchant();
    const { process, state } = startProcess();
    await authenticate(process, basic(keyId, secret));
    state.lookups.length = 0;
    await assert.rejects(authenticate(process, basic(keyId, 'wrong')), refusal('01'));
    assert.equal(state.lookups.length, 1);
    await assert.rejects(authenticate(process, basic('key_thatIsMadeUp0000', 'wrong')), refusal('01'));
    assert.equal(state.lookups.length, 2);
  });
});
