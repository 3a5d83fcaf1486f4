import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { before, test } from 'node:test';
import { freePort } from '../../soak/process.ts';
import { sql } from '../../src/db/sql.ts';
import { breakingProxy } from '../support/breaking-proxy.ts';
import { type ListeningService, type TestMerchant, testService } from '../support/harness.ts';
import { sampleOf } from '../support/metrics.ts';
import { ofFile } from '../support/scope.ts';
import { runScrip, startScrip } from '../support/scrip.ts';
import { until } from '../support/until.ts';

/** Commands that call a service from outside, as a till does. */

const file = ofFile();
let service: ListeningService;
before(async () => {
  service = await testService(file);
});

const keyOf = ({ keyId, secret }: TestMerchant) => ({
  SCRIP_KEY_ID: keyId,
  SCRIP_SECRET: secret,
  SCRIP_DATA_DIR: tmpdir(),
});

const makeMerchant = () => service.createMerchant({ permit: ['update-redemption'], float: 1_000_000n });

/** The batches and the kinds of movements of a merchant, and what was redeemed and not given back. */
async function bookedFor({ id }: TestMerchant) {
  const [row] = await service.service.db.query<{ batches: number; redeemed: number; kept: number }>(sql`
select (select count(*) from batches where merchant_id = ${id})::int as batches,
  count(*) filter (where kind = 'REDEMPTION')::int as redeemed,
  coalesce(sum(amount_minor) filter (where kind = 'REDEMPTION'), 0)::int
    - coalesce(sum(amount_minor) filter (where kind = 'REDEMPTION_REVERSAL'), 0)::int as kept
from journal where merchant_id = ${id}`);
  return row ?? assert.fail();
}

test('a probe redeems a voucher of its own and takes it back, and uses the same voucher again', async () => {
  const merchant = await makeMerchant();
  for (const redeemed of [1, 2]) {
    const ran = await runScrip(keyOf(merchant), 'probe', '--url', service.baseUrl, '--json');
    assert.equal(ran.status, 0, ran.err + ran.out);
    const { ok, failure, seconds } = JSON.parse(ran.out);
    assert.deepEqual([ok, failure, Object.keys(seconds)], [true, null, ['balance', 'redeem', 'reverse']]);
    assert.deepEqual(await bookedFor(merchant), { batches: 1, redeemed, kept: 0 });
  }
});

test('a probe that fails names the step and the status code', async () => {
  const { id, ...merchant } = await service.createMerchant({ float: 1_000_000n });
  const ran = await runScrip(keyOf({ id, ...merchant }), 'probe', '--url', service.baseUrl);
  assert.equal(ran.status, 1);
  assert.match(ran.out, /The service does not sell: reverse: 03 Access denied\n$/);
  const url = `http://127.0.0.1:${await freePort()}`;
  const away = await runScrip(keyOf({ id, ...merchant }), 'probe', '--url', url, '--json');
  assert.equal(away.status, 1);
  assert.deepEqual(JSON.parse(away.out), {
    ok: false,
    failure: 'order: no answer (ECONNREFUSED)',
    seconds: {},
  });
  const bench = await runScrip(keyOf({ id, ...merchant }), 'bench', '--url', url);
  assert.deepEqual([bench.status, bench.err], [1, 'scrip: no answer (ECONNREFUSED)\n']);
  const none = await runScrip({}, 'probe', '--url', url);
  assert.equal(none.status, 2);
  assert.match(none.err, /^scrip: set SCRIP_KEY_ID and SCRIP_SECRET .*\n$/);
});

test('a probe whose redemption was booked, and not answered, takes it back', async (t) => {
  const merchant = await makeMerchant();
  const url = await breakingProxy(t, service.baseUrl, {
    coming(answer, { path }) {
      if (path.endsWith('/redeem')) answer.text = '<html>502 Bad Gateway</html>';
    },
  });
  const { status, out } = await runScrip(keyOf(merchant), 'probe', '--url', url, '--json');
  assert.equal(status, 1);
  assert.equal(JSON.parse(out).failure, 'redeem: no answer (HTTP 200)');
  assert.deepEqual(await bookedFor(merchant), { batches: 1, redeemed: 1, kept: 0 });
});

test('a probe that goes on serves its outcome to Prometheus, and ends at a signal', async (t) => {
  const merchant = await makeMerchant();
  const port = await freePort();
  const settings = { ...keyOf(merchant), SCRIP_METRICS_PORT: String(port) };
  const { child, ended } = startScrip(settings, ['probe', '--url', service.baseUrl, '--every', '1']);
  t.after(() => child.kill('SIGKILL'));
  const outcome = async (wanted: number) => {
    await until(`the probe reports ${wanted}`, async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined);
      const text = (await answer?.text()) ?? '';
      const isTimed = sampleOf(text, 'scrip_probe_seconds{step="redeem"}') !== undefined;
      return sampleOf(text, 'scrip_probe_success') === wanted && isTimed === (wanted === 1);
    });
  };
  await outcome(1);
  await service.service.db.query(sql`update merchants set suspended_at = now() where id = ${merchant.id}`);
  await outcome(0);
  child.kill('SIGTERM');
  assert.equal((await ended).status, 0);
});

test('a bench measures with a merchant of its own, and gives everything back', async () => {
  const merchant = await makeMerchant();
  const args = ['bench', '--url', service.baseUrl, '--tills', '2', '--seconds', '1', '--json'];
  for (const _ of ['first', 'again']) {
    const ran = await runScrip(keyOf(merchant), ...args);
    assert.equal(ran.status, 0, ran.err);
    const { tills, steps, failures } = JSON.parse(ran.out);
    assert.deepEqual([tills, failures], [2, {}]);
    for (const { count, perSecond, p50Ms, maxMs } of steps)
      assert.ok(count > 0 && perSecond > 0 && p50Ms > 0 && maxMs >= p50Ms);
    const { batches, redeemed, kept } = await bookedFor(merchant);
    assert.deepEqual([batches, redeemed > 0, kept], [2, true, 0]);
  }
});

test('a bench refuses the merchant of a shop before it orders anything', async () => {
  const run = (merchant: TestMerchant) =>
    runScrip(keyOf(merchant), 'bench', '--url', service.baseUrl, '--seconds', '1');
  const shop = await makeMerchant();
  const order = { reference: 'shop-1', quantity: 1, value: 5 };
  await service.request(shop, { method: 'POST', path: '/api/v2/vouchers', body: order });
  const opening = await service.createMerchant({ float: 1_000_000n });
  for (const [merchant, batches, reason] of [
    [shop, 1, /does other things than measure/],
    [opening, 0, /may not update redemptions \(03\)/],
  ] as const) {
    const { status, out, err } = await run(merchant);
    assert.deepEqual([status, out], [1, '']);
    assert.match(err, reason);
    assert.equal((await bookedFor(merchant)).batches, batches);
  }
});
