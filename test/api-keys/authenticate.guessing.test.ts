import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { admit, authenticate } from '../../src/api-keys/authenticate.ts';
import { blockGuesser, countCall, flushCalls, recordGuesses } from '../../src/api-keys/guesses.ts';
import { apiKeys, listKeys } from '../../src/api-keys/keys.ts';
import type { Service } from '../../src/context.ts';
import { sql } from '../../src/db/sql.ts';
import { merchants } from '../../src/merchants/merchants.ts';
import type { Refusal } from '../../src/refusal.ts';
import { HOUR_MS } from '../../src/time.ts';
import { asOperator, basic, startTestService, type TestService } from '../support/harness.ts';

let testService: TestService;

before(async () => {
  testService = await startTestService();
});

after(async () => {
  await testService?.stop();
});

/** Noon, so that no test runs over midnight. */
const NOON = Date.UTC(2030, 0, 15, 12);

function startProcess() {
  const state = { nowMs: NOON };
  const process: Service = {
    ...testService.service,
    memory: new Map(),
    clock: () => new Date(state.nowMs),
  };
  return { process, state };
}

async function newKey() {
  const { id, keyId, secret } = await testService.createMerchant();
  const header = basic(keyId, secret);
  return { id: Number(id), keyId, header };
}

/** Sends a call with a PIN. @param guess whether its code or PIN is wrong */
async function call(
  process: Service,
  key: { keyId: string; header: string },
  guess: boolean,
): Promise<'answered' | Refusal> {
  const caller = await authenticate(process, key.header);
  try {
    admit(caller, true);
  } catch (error) {
    return error as Refusal;
  }
  if (guess) await recordGuesses(process, [key.keyId]);
  return 'answered';
}

describe('the guess limit of a key', () => {
  test('counts the concurrent guesses of all processes together', async () => {
    const key = await newKey();
    const processes = [startProcess().process, startProcess().process];
    const some = async (count: number) => {
      await Promise.all(
        Array.from({ length: count }, (_, index) =>
          recordGuesses(processes[index % 2] as Service, [key.keyId]),
        ),
      );
    };
    await some(50);
    assert.equal(await call(processes[0] as Service, key, false), 'answered');
    await some(2);
    const [info] = await listKeys(processes[0] as Service, key.id);
    assert.equal(info?.guesses, 52);
    assert.ok(info?.blockedAt);
  });

  test('reports a block to every process, and to one of them as the first', async () => {
    const key = await newKey();
    const { process } = startProcess();
    for (let guess = 1; guess <= 50; guess++) await call(process, key, true);
    await flushCalls(process);
    await process.db.query(sql`update api_key_days set guesses = 51 where key_id = ${key.keyId}`);
    const block = (at: number) =>
      process.db.query(blockGuesser(key.keyId, '2030-01-15', 50, 0.02, new Date(at)));
    assert.deepEqual(await block(NOON), [{ guesses: 51, calls: 50n, first: true }]);
    assert.deepEqual(await block(NOON + 1), [{ guesses: 51, calls: 50n, first: false }]);
  });

  test('starts over at midnight UTC', async () => {
    const key = await newKey();
    const { process, state } = startProcess();
    for (let guess = 1; guess <= 51; guess++) await call(process, key, true);
    state.nowMs += 11 * HOUR_MS;
    assert.equal(((await call(process, key, false)) as Refusal).retryAfterSeconds, 3600);
    state.nowMs += HOUR_MS;
    assert.equal(await call(process, key, true), 'answered');
  });

  test('starts over when the operator pardons the key', async () => {
    const key = await newKey();
    const { process, state } = startProcess();
    for (let guess = 1; guess <= 51; guess++) await call(process, key, true);
    await apiKeys.pardon.run(asOperator(process), { keyId: key.keyId });
    state.nowMs += 900;
    for (let guess = 1; guess <= 51; guess++) assert.equal(await call(process, key, true), 'answered');
    assert.equal(((await call(process, key, true)) as Refusal).code, '97');
  });
});

describe('a key whose codes are mostly right', () => {
  test('may guess more than fifty times, up to two in a hundred calls', async () => {
    const key = await newKey();
    const { process } = startProcess();
    for (let right = 0; right < 3_000; right++) await call(process, key, false);
    for (let guess = 1; guess <= 60; guess++) await call(process, key, true);
    // 60 of 3060 are less than two in a hundred.
    assert.equal(await call(process, key, true), 'answered');
    // 64 of 3064 are more.
    for (let guess = 62; guess <= 64; guess++) await call(process, key, true);
    assert.equal(((await call(process, key, true)) as Refusal).code, '97');
  });

  test('gets no credit for calls refused by its rate limit, by its block, or by a suspension', async () => {
    const { service } = testService;
    const limited = await newKey();
    await apiKeys.limit.run(asOperator(service), { keyId: limited.keyId, perSecond: 1, burst: 2 });
    const stopped = await newKey();
    const suspended = await newKey();
    const { process, state } = startProcess();
    for (let guess = 1; guess <= 51; guess++) await call(process, stopped, true);
    await merchants.suspend.run(asOperator(service), { id: String(suspended.id) });
    for (const key of [limited, stopped, suspended])
      for (let count = 0; count < 100; count++) await call(process, key, false);
    // A call without a PIN is still admitted, and counts.
    admit(await authenticate(process, stopped.header), false);
    state.nowMs += 60_000;
    assert.equal(((await call(process, suspended, false)) as Refusal).code, '04');
    await flushCalls(process);
    const counted = async ({ id }: { id: number }) => {
      const [info] = await listKeys(process, id);
      // Refused calls count as use of the key.
      assert.ok(info?.lastUsedAt);
      return Number(info.calls);
    };
    assert.equal(await counted(limited), 2);
    assert.equal(await counted(stopped), 52);
    assert.equal(await counted(suspended), 0);
  });

  test('is logged after every five hundred further guesses', async () => {
    const key = await newKey();
    const warnings: unknown[] = [];
    const { process } = startProcess();
    const warn = (fields: { guesses: number }, text: string) => warnings.push([fields.guesses, text]);
    const listening = { ...process, log: { ...process.log, warn, debug() {} } } as unknown as Service;
    const { context } = await authenticate(listening, key.header);
    for (let count = 0; count < 60_000; count++) countCall(listening, key.keyId, context.now, true);
    for (const count of [499, 1, 400, 150]) {
      await recordGuesses(listening, Array(count).fill(key.keyId));
    }
    const text = 'key guesses much, though little for its calls';
    assert.equal(warnings.length, 2);
    for (const [at, least] of [500, 1_000].entries()) {
      const [count, words] = warnings[at] as [number, string];
      assert.ok(count >= least && count < least + 150, `${count}`);
      assert.equal(words, text);
    }
  });

  test('has all its calls counted, by every process', async () => {
    const key = await newKey();
    const one = startProcess().process;
    const other = startProcess().process;
    for (let count = 0; count < 7; count++) await call(one, key, false);
    for (let count = 0; count < 5; count++) await call(other, key, false);
    await Promise.all([flushCalls(one), flushCalls(other)]);
    const [info] = await listKeys(one, key.id);
    assert.deepEqual([Number(info?.calls), info?.guesses, info?.blockedAt], [12, 0, null]);
  });
});
