import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { sql } from '../../src/db/sql.ts';
import { groupOf } from '../../src/jobs/jobs.ts';
import { startJobs } from '../../src/jobs/queue.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { JOB_RUNS } from '../../src/operations/background.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { operatorApi } from '../support/operator.api.ts';
import { type Made, makeVouchers } from '../support/operator.ts';
import { until } from '../support/until.ts';

// Before the end of the service.
after(() => worker?.stop());
const api = operatorApi();
let serials: string[];
let worker: { stop(): Promise<void> } | undefined;

before(async () => {
  const merchant = await api.testService.createMerchant();
  const { context } = await authenticate(api.testService.service, merchant.authorization);
  serials = (await makeVouchers(context, 'bulk', 10)).map(({ serialNumber }) => String(serialNumber));
});

async function ended(id: string) {
  return until(`job ${id} ends`, async () => {
    const { body } = await api.get(`/jobs/${id}`);
    return !['WAITING', 'RUNNING'].includes(body.state) && body;
  });
}

describe('a bulk change', () => {
  test('is previewed, then done row by row, with the outcome of each row', async () => {
    const [replaced = ''] = serials;
    await api.post(`/vouchers/${replaced}/replace`, {});
    const change = { action: 'block', serialNumbers: [...serials, '10000000001'] };
    const { body: shown } = await api.post('/vouchers/bulk/preview', change);
    assert.deepEqual([shown.total, shown.changes, shown.declined, shown.unknown], [11, 9, 2, 1]);
    const headers = { 'idempotency-key': 'bulk-1' };
    const started = await api.post('/vouchers/bulk', { ...change, reason: 'stolen parcel' }, headers);
    assert.deepEqual([started.status, started.body.state, started.body.total], [202, 'WAITING', 11]);
    const again = await api.post('/vouchers/bulk', { ...change, reason: 'stolen parcel' }, headers);
    assert.equal(again.body.id, started.body.id);
    const following = api.call('GET', `/operator/v1/jobs/${started.body.id}/events`);
    worker = startJobs(api.testService.service, [groupOf(JOB_RUNS)]);
    const job = await ended(started.body.id);
    assert.deepEqual([job.state, job.done, job.failed], ['COMPLETED', 11, 2]);
    const { items } = (await api.get(`/jobs/${job.id}/rows`)).body;
    assert.deepEqual(
      items.map((each: { outcome: string }) => each.outcome),
      ['44', ...new Array(9).fill('ok'), '14'],
    );
    const events = String((await following).body);
    assert.match(events, /^event: progress\ndata: \{/);
    assert.match(events, /"state":"COMPLETED"/);
    const file = String((await api.call('GET', `/operator/v1/jobs/${job.id}/rows.csv`)).body);
    assert.equal(file.trim().split('\r\n').length, 12);
    assert.equal((await api.get(`/vouchers/${serials[5]}`)).body.state, 'BLOCKED');
    const { body: audit } = await api.get(`/audit?subject=${encodeURIComponent(`voucher ${serials[5]}`)}`);
    assert.deepEqual([audit.items[0].action, audit.items[0].actorKind], ['voucher.block', 'token']);
    assert.equal(audit.items[0].reason, 'stolen parcel');
  });

  test('keeps the rows that it has done when it is canceled', async () => {
    await worker?.stop();
    const change = { action: 'unblock', serialNumbers: serials.slice(1) };
    const { body: started } = await api.post('/vouchers/bulk', change);
    const { service } = api.testService;
    // Twenty streams of its events are open, and stay open until it ends.
    const follow = () => api.call('GET', `/operator/v1/jobs/${started.id}/events`);
    assert.equal((await Promise.race(Array.from({ length: 21 }, follow))).status, 429);
    await service.db.query(sql`update jobs set asked_to_cancel = true where id = ${Number(started.id)}`);
    worker = startJobs(service, [groupOf(JOB_RUNS)]);
    const job = await ended(started.id);
    assert.deepEqual([job.state, job.done], ['CANCELED', 0]);
    const { items } = (await api.get(`/jobs/${job.id}/rows`)).body;
    assert.ok(items.every((each: { outcome: string | null }) => each.outcome === null));
    const again = await api.post(`/jobs/${job.id}/cancel`, {});
    assert.deepEqual([again.status, again.body.code], [409, 'conflict']);
  });

  test('that cancels vouchers returns their balances, and its file shows the rows done', async () => {
    await worker?.stop();
    const { service } = api.testService;
    const merchant = await api.testService.createMerchant();
    const { context } = await authenticate(service, merchant.authorization);
    const made: Made[] = [];
    for (const part of ['1', '2', '3']) made.push(...(await makeVouchers(context, `cancel ${part}`, 10)));
    const [first] = made;
    assert.ok(first);
    await redeem(context, { code: first.code, pin: first.pin, amount: 30, reference: 'all of it' });
    const list = made.map(({ serialNumber }) => String(serialNumber));
    const floatOf = async () =>
      (await api.get(`/floats?merchantId=${merchant.id}`)).body.items[0].balance as number;
    const before = await floatOf();
    const shown = (await api.post('/vouchers/bulk/preview', { action: 'cancel', serialNumbers: list })).body;
    assert.deepEqual([shown.changes, shown.declined, shown.rows[0].declined], [29, 1, '42']);
    const { body: started } = await api.post('/vouchers/bulk/cancel', { serialNumbers: list });
    const run = JOB_RUNS['voucher.bulk-cancel'];
    assert.ok(run && 'row' in run);
    let rows = 0;
    const stopping: typeof run = {
      async row(...args) {
        if (++rows === 5)
          await service.db.query(
            sql`update jobs set asked_to_cancel = true where id = ${Number(started.id)}`,
          );
        await run.row(...args);
      },
    };
    worker = startJobs(service, [groupOf({ ...JOB_RUNS, 'voucher.bulk-cancel': stopping })]);
    const job = await ended(started.id);
    // It checks after every 20 rows if it was canceled.
    assert.deepEqual([job.state, job.done, job.failed], ['CANCELED', 20, 1]);
    const file = String((await api.call('GET', `/operator/v1/jobs/${job.id}/rows.csv`)).body);
    const outcomes = file
      .trim()
      .split('\r\n')
      .map((line) => line.split(',')[2]);
    assert.deepEqual(outcomes, ['outcome', '42', ...new Array(19).fill('ok'), ...new Array(10).fill('')]);
    assert.equal(await floatOf(), before + 19 * 30);
    const { state, balance } = (await api.get(`/vouchers/${list[1]}`)).body;
    assert.deepEqual([state, balance], ['CANCELED', 0]);
    assert.equal((await api.post(`/vouchers/${list[1]}/cancel`, {})).body.code, '44');
    assert.equal((await api.post(`/vouchers/${list[25]}/cancel`, {})).body.state, 'CANCELED');
    const { ok, checks } = await reconcile(service);
    assert.deepEqual(
      checks.filter((each) => !each.ok),
      [],
    );
    assert.ok(ok);
  });

  test('takes a range of one batch, from either end, and none over two batches', async () => {
    const { context } = await authenticate(
      api.testService.service,
      (await api.testService.createMerchant()).authorization,
    );
    const [box, other] = [await makeVouchers(context, 'box', 5), await makeVouchers(context, 'other', 1)];
    const [first = '', second = '', , fourth = ''] = box.map(({ serialNumber }) => String(serialNumber));
    const preview = (from: string, to: string) =>
      api.post('/vouchers/bulk/preview', { action: 'block', from, to });
    assert.equal((await preview(second, fourth)).body.changes, 3);
    assert.equal((await preview(fourth, second)).body.changes, 3);
    assert.equal((await preview(first, first)).body.changes, 1);
    for (const to of [String(other[0]?.serialNumber), '10000000001']) {
      const { status, body } = await preview(first, to);
      assert.deepEqual([status, body.errors[0].field], [400, 'to']);
    }
    const started = await api.post('/vouchers/bulk', { action: 'block', from: second, to: fourth });
    assert.equal((await ended(started.body.id)).done, 3);
    const states = await Promise.all(box.map(async (each) => api.get(`/vouchers/${each.serialNumber}`)));
    assert.deepEqual(
      states.map(({ body }) => body.state),
      ['ACTIVE', 'BLOCKED', 'BLOCKED', 'BLOCKED', 'ACTIVE'],
    );
  });

  test('blocks more than a hundred vouchers at once, but unblocks them only after an approval', async () => {
    const serialNumbers = Array.from({ length: 101 }, (_, at) => String(10_000_000_064 + at));
    const start = (action: string) => api.post('/vouchers/bulk', { action, serialNumbers });
    const [blocks, unblocks] = [await start('block'), await start('unblock')];
    assert.deepEqual([blocks.status, blocks.body.total], [202, 101]);
    assert.deepEqual([unblocks.status, unblocks.body.approval === undefined], [202, false]);
  });

  test('with an invalid field is refused with the name of the field', async () => {
    for (const [body, field] of [
      [{ action: 'block' }, 'serialNumbers'],
      [{ action: 'block', serialNumbers: ['x'] }, 'serialNumbers'],
      [{ action: 'block', serialNumbers: ['10000000064'], from: '10000000064' }, 'serialNumbers'],
      [{ action: 'block', from: '10000000064' }, 'to'],
      [{ action: 'extend', serialNumbers: ['10000000064'] }, 'expiry'],
      [{ action: 'extend', serialNumbers: ['10000000064'], expiry: '2030-02-30' }, 'expiry'],
      [{ action: 'destroy', serialNumbers: ['10000000064'] }, 'action'],
    ] as const) {
      const answer = await api.post('/vouchers/bulk/preview', body);
      assert.deepEqual([answer.status, answer.body.errors[0].field], [400, field]);
    }
  });
});

describe('a job without rows', () => {
  test('checks the books and the audit', async () => {
    const books = await api.post('/reconcile', {});
    const chain = await api.post('/audit/verify', {});
    assert.deepEqual([books.status, chain.status], [202, 202]);
    const proven = await ended(books.body.id);
    assert.deepEqual([proven.state, proven.result.ok], ['COMPLETED', true]);
    assert.equal((await ended(chain.body.id)).result.ok, true);
  });
});

describe('the root of the server', () => {
  test('redirects browsers to the console, and is an unknown path for other clients', async () => {
    const browser = await fetch(api.testService.baseUrl, {
      headers: { accept: 'text/html,*/*' },
      redirect: 'manual',
    });
    assert.deepEqual([browser.status, browser.headers.get('location')], [302, '/console/']);
    const other = await fetch(api.testService.baseUrl);
    assert.deepEqual(
      [other.status, ((await other.json()) as { statusCode: string }).statusCode],
      [404, '98'],
    );
    const head = await fetch(`${api.testService.baseUrl}/operator/v1/merchants`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${await api.token(['support'])}` },
    });
    assert.equal(head.status, 200);
  });

  test('answers an unknown path below an API with a problem document, also to a browser', async () => {
    for (const path of ['/operator/v1/unknown', '/portal/v1/unknown']) {
      const unknown = await fetch(api.testService.baseUrl + path, { headers: { accept: 'text/html' } });
      assert.deepEqual(
        [unknown.status, ((await unknown.json()) as { code: string }).code],
        [404, '98'],
        path,
      );
    }
  });
});
