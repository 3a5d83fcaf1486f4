import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  DamagedStoreError,
  type PendingCall,
  type PendingStore,
  type Recovered,
  Scrip,
  type ScripOptions,
  UnknownOutcomeError,
  type Variant,
} from '../../sdk/src/index.ts';
import { fileStore } from '../../sdk/src/node/file-store.ts';
import { temporaryFolder } from '../support/leave-nothing.ts';
import { makeToken } from '../support/operator.api.ts';
import { startProxy } from '../support/sdk.proxy.ts';
import { failure } from '../support/sdk.server.ts';
import { Till } from '../support/till.ts';

/** Pending calls: they are kept before they are sent, and recovered after any crash. */

const CHILD = fileURLToPath(new URL('../support/sdk.pending.child.ts', import.meta.url));

async function folderOf(t: TestContext): Promise<string> {
  const folder = await temporaryFolder('scrip-pending-');
  t.after(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'calls');
}

async function open(t: TestContext) {
  const till = await Till.open(t);
  const proxy = await startProxy(t, till.testService.baseUrl);
  const folder = await folderOf(t);
  const { keyId, secret, id } = till.merchant;
  const portalToken = await makeToken(till.testService, ['cashier'], id);
  const options = { baseUrl: proxy.baseUrl, keyId, secret, retryDelayMs: 10, fetch: proxy.fetch };
  /** A client as a new process opens it. */
  const client = <V extends Variant>(variant: V, more: Partial<ScripOptions<V>> = {}) =>
    new Scrip({ ...options, variant, portalToken, pending: fileStore(folder), ...more });
  return { till, proxy, folder, client, options: { ...options, portalToken } };
}

const outcomesOf = (recovered: readonly Recovered[]) =>
  recovered.map(({ call, outcome }) => `${call.reference}: ${outcome}`).sort();

describe('a pending call', () => {
  it('is on the disk before it is sent, without code and PIN, and forgotten when its outcome is known', async (t) => {
    const { till, client, folder } = await open(t);
    const card = await till.voucher(100);
    const seen: string[] = [];
    const scrip = client('a', {
      baseUrl: till.testService.baseUrl,
      fetch: async (...request) => {
        for (const name of await readdir(folder)) {
          assert.equal((await stat(join(folder, name))).mode & 0o777, 0o600);
          seen.push(await readFile(join(folder, name), 'utf8'));
        }
        return fetch(...request);
      },
    });
    await scrip.redeem({ ...card, amount: 5, reference: 'Bon 17 – ä€🎁' });
    await scrip.updateRedemption({ reference: 'Bon 17 – ä€🎁', amountUsed: 2 });
    await failure(scrip.redeem({ ...card, amount: 500, reference: 'too much' }));
    const kept = seen.map((text) => JSON.parse(text.slice(65)) as PendingCall);
    assert.deepEqual(
      kept.map(({ operation, reference, amount, body }) => [operation, reference, amount, body !== null]),
      [
        ['redeem', 'Bon 17 – ä€🎁', 5, false],
        ['updateRedemption', 'Bon 17 – ä€🎁', 2, true],
        ['redeem', 'too much', 500, false],
      ],
    );
    for (const text of seen)
      for (const secret of [card.code, card.pin, till.merchant.secret])
        assert.ok(!text.replace(/"startedAt":"[^"]+"|^\w+/g, '').includes(secret), text);
    assert.deepEqual(await readdir(folder), []);
    assert.deepEqual(await client('a').recover(), []);
  });

  it('is recovered by the next process: found, sent again, or given up', async (t) => {
    const { till, proxy, client } = await open(t);
    const card = await till.voucher(100);
    const once = { maxAttempts: 1 };
    const lost = (call: Promise<unknown>) => failure(call, UnknownOutcomeError);
    for (const variant of ['a', 'b'] as const) {
      const scrip = client(variant, once);
      proxy.plan(['hang']);
      await lost(scrip.redeem({ ...card, amount: 5, reference: `booked ${variant}` }));
      proxy.plan(['cut before']);
      await lost(scrip.redeem({ ...card, amount: 5, reference: `lost ${variant}` }));
    }
    proxy.plan(['cut before']);
    const a = client('a', once);
    await lost(a.generate({ productCode: 'DEFAULT', quantity: 2, value: 5, reference: 'batch' }));
    await a.redeem({ ...card, amount: 3, reference: 'to reverse' });
    proxy.plan(['cut before']);
    await lost(a.reverseRedemption('to reverse'));

    const recorded: Recovered[] = [];
    const inB = await client('b').recover({ record: (each) => recorded.push(each) });
    const inA = await client('a').recover({ record: (each) => recorded.push(each) });
    await proxy.settle();
    assert.deepEqual(outcomesOf(recorded), [
      'batch: done',
      'booked a: done',
      'booked b: done',
      'lost a: not-done',
      'lost b: not-done',
      'to reverse: done',
    ]);
    // A client of the other variant leaves a call as it is.
    assert.equal(inB.filter(({ outcome }) => outcome === 'unknown').length, 4);
    assert.equal(inA.length, 4);
    assert.equal(await till.balanceOf(card), 90);
    assert.equal((await client('a').download('batch')).status, 'COMPLETED');
    assert.deepEqual(await client('a').recover(), []);
    await till.reconciles();
  });

  it('stays unknown without a token of the portal, and while the service is away', async (t) => {
    const { till, proxy, client } = await open(t);
    const card = await till.voucher(100);
    proxy.plan(['cut before']);
    const reference = 'order-1';
    await failure(
      client('b', { maxAttempts: 1 }).redeem({ ...card, amount: 5, reference }),
      UnknownOutcomeError,
    );
    const away = { baseUrl: 'http://127.0.0.1:1', maxAttempts: 1 };
    const elsewhere = await client('b', away).recover();
    assert.deepEqual(outcomesOf(elsewhere), ['order-1: unknown']);
    assert.deepEqual(outcomesOf(await client('b', { portalToken: undefined }).recover()), [
      'order-1: unknown',
    ]);
    const scrip = client('b');
    // The same request again is refused for another reason: that says nothing of the first one.
    const locked = { ...card, pin: card.pin === '0000' ? '0001' : '0000' };
    const stranger = client('b', { secret: 'wrong' });
    await failure(stranger.redeem({ ...locked, amount: 5, reference }), UnknownOutcomeError);
    assert.deepEqual(outcomesOf(await scrip.recover()), ['order-1: not-done']);
    await proxy.settle();
    assert.equal(await till.balanceOf(card), 100);
  });

  it('is not recovered while it still runs', async (t) => {
    const { till, client } = await open(t);
    const card = await till.voucher(100);
    const during: (readonly Recovered[])[] = [];
    const scrip = client('b', {
      baseUrl: till.testService.baseUrl,
      fetch: async (...request) => {
        if (String(request[0]).endsWith('/redeem')) during.push(await scrip.recover());
        return fetch(...request);
      },
    });
    await scrip.redeem({ ...card, amount: 5, reference: 'order-1' });
    assert.deepEqual(during, [[]]);
  });

  it('is not sent if it cannot be kept, and not forgotten if its result cannot be recorded', async (t) => {
    const { till, client } = await open(t);
    const card = await till.voucher(100);
    const full: PendingStore = {
      put: () => Promise.reject(new Error('the disk is full')),
      delete: async () => {},
      list: async () => [],
    };
    const unsent = client('b', { pending: full }).redeem({ ...card, amount: 5, reference: 'order-1' });
    assert.equal((await failure(unsent)).code, 'storeFailure');
    assert.equal(await till.balanceOf(card), 100);
    const scrip = client('b');
    const record = () => Promise.reject(new RangeError('the database is away'));
    await assert.rejects(scrip.redeem({ ...card, amount: 5, reference: 'order-2' }, { record }), RangeError);
    await assert.rejects(scrip.recover({ record }), RangeError);
    const records: unknown[] = [];
    await scrip.recover({ record: (each) => records.push(each.outcome) });
    assert.deepEqual([records, await scrip.recover()], [['done'], []]);
    assert.equal(await till.balanceOf(card), 95);
  });
});

describe('a damaged store', () => {
  it('says so, keeps the damaged file, and recovers the others', async (t) => {
    const { till, proxy, client, folder } = await open(t);
    const card = await till.voucher(100);
    const store = fileStore(folder);
    for (const reference of ['one', 'two', 'three', 'four']) {
      proxy.plan(['cut before']);
      const lost = client('b', { maxAttempts: 1 }).redeem({ ...card, amount: 5, reference });
      await failure(lost, UnknownOutcomeError);
    }
    const names = (await readdir(folder)).sort();
    const [cut, changed, renamed] = names.map((name) => join(folder, name)) as [
      string,
      string,
      string,
      string,
    ];
    await writeFile(cut, (await readFile(cut, 'utf8')).slice(0, 90));
    await writeFile(changed, (await readFile(changed, 'utf8')).replace('"amount":5', '"amount":6'));
    await writeFile(join(folder, `${'0'.repeat(64)}.json`), await readFile(renamed, 'utf8'));
    // What a crash in the middle of `put` leaves is no damage: that call was not sent.
    await writeFile(`${cut}.${crypto.randomUUID()}`, '');
    const error = await store.list().then(
      () => assert.fail('the damage was not found'),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof DamagedStoreError);
    assert.equal(error.calls.length, 2);
    for (const path of [cut, changed, '0'.repeat(64)]) assert.ok(error.message.includes(path));
    const records: string[] = [];
    const recovering = client('b').recover({ record: (each) => records.push(each.outcome) });
    await assert.rejects(recovering, DamagedStoreError);
    assert.deepEqual(records, ['not-done', 'not-done']);
    assert.equal((await readdir(folder)).length, 3);
    await proxy.settle();
  });
});

describe('a process that is killed', () => {
  /** In the order in which a call passes them. */
  const POINTS = ['before put', 'after put', 'before delete', 'after delete', 'server got', 'server done'];

  it('at any point of a redemption leaves it to the next one, which ends with one outcome', async (t) => {
    const { till, folder, options } = await open(t);
    const card = await till.voucher(100);
    let taken = 0;
    for (const variant of ['a', 'b'] as const) {
      for (const point of POINTS) {
        const reference = `${point} ${variant}`;
        const wanted = { ...options, fetch: undefined, baseUrl: till.testService.baseUrl, variant };
        const child = fork(CHILD, [JSON.stringify({ folder, point, wanted, card, reference })]);
        const [, signal] = await new Promise<[number | null, string | null]>((resolve) =>
          child.on('exit', (code, how) => resolve([code, how])),
        );
        assert.equal(signal, 'SIGKILL', point);
        const scrip = new Scrip({ ...wanted, variant, pending: fileStore(folder) });
        const isTaken = (await till.balanceOf(card)) < 100 - taken;
        const recovered = await scrip.recover();
        if (isTaken) taken += 5;
        const isKept = point !== 'before put' && point !== 'after delete';
        assert.deepEqual(
          outcomesOf(recovered),
          isKept ? [`${reference}: ${isTaken ? 'done' : 'not-done'}`] : [],
          point,
        );
        assert.equal(isTaken, !['before put', 'after put', 'server got'].includes(point), point);
        assert.equal(await till.balanceOf(card), 100 - taken);
        assert.deepEqual(await scrip.recover(), []);
      }
    }
  });
});
