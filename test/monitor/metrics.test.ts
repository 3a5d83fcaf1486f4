import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { type TestContext, test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { OPERATIONS } from '../../src/backups/note.ts';
import { generate } from '../../src/batches/generate.ts';
import { createService } from '../../src/context.ts';
import { openDatabase } from '../../src/db/pool.ts';
import { buildServer } from '../../src/http/server.ts';
import { examine } from '../../src/monitor/doctor.ts';
import { createGauges } from '../../src/monitor/gauges.ts';
import { createMetrics } from '../../src/monitor/metrics.ts';
import { DIALECTS } from '../support/dialects.ts';
import { DEPLOYMENT } from '../support/doctor.ts';
import { asOperator, startTestService } from '../support/harness.ts';
import { sampleOf } from '../support/metrics.ts';
import { asOwner } from '../support/owner.ts';
import { openWay } from '../support/way.ts';
import { Hooked } from '../support/webhooks.ts';

/** A service with metrics, and a merchant. */
async function countingService(t: TestContext) {
  const started = await startTestService();
  t.after(started.stop);
  const metrics = createMetrics();
  const service = createService({ ...started.service, metrics });
  const app = buildServer(service);
  t.after(() => app.close());
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  return { started, service, metrics, baseUrl, merchant: await started.createMerchant() };
}

test('calls are counted by operation, variant and status, with their latency', async (t) => {
  const { metrics, baseUrl, merchant } = await countingService(t);
  const headers = { authorization: merchant.authorization, 'content-type': 'application/json' };
  const post = (path: string, body: object) =>
    fetch(baseUrl + path, { method: 'POST', headers, body: JSON.stringify(body) }).then((each) =>
      each.json(),
    );
  await post('/api/v2/balance', { voucherCode: '100000000000', pin: '0000' });
  await post('/api/v2/balance', { voucherCode: '100000000000', pin: '0000' });
  await post('/merchant-client/v2/balance', { code: '100000000000', pin: '0000' });
  await fetch(`${baseUrl}/nowhere`);
  const text = await metrics.text();
  assert.equal(
    sampleOf(text, 'scrip_calls_total{variant="a",operation="redeemVoucher",status="96"}'),
    0,
    'errors are counted from 0, so that the alert notices the first one',
  );
  const calls = (variant: string) =>
    `scrip_calls_total{variant="${variant}",operation="checkBalance",status="14"}`;
  assert.deepEqual([sampleOf(text, calls('a')), sampleOf(text, calls('b'))], [1, 2]);
  assert.equal(sampleOf(text, 'scrip_call_seconds_count{variant="b",operation="checkBalance"}'), 2);
  assert.ok((sampleOf(text, 'scrip_gather_rows_sum') ?? 0) >= 3);
  assert.ok(!text.includes('nowhere'));
  assert.ok(!text.includes('100000000000'));
});

test('the doctor and the metric know the last backup of an own server that was reported', async (t) => {
  const started = await startTestService();
  t.after(started.stop);
  const { service } = started;
  const backup = async () =>
    (await examine(DEPLOYMENT, service.db)).find(({ check }) => check === 'backup') ?? assert.fail();
  const age = async () => sampleOf(await createGauges(service, undefined)(), 'scrip_last_backup_seconds');
  assert.deepEqual([(await backup()).state, await age()], ['warning', undefined]);
  const ended = (hoursAgo: number) => () => new Date(Date.now() - hoursAgo * 3_600_000);
  const report = (hoursAgo: number, place: string) =>
    OPERATIONS[0]?.run(asOperator({ ...service, clock: ended(hoursAgo) }), { place });
  await report(37, 's3://vault/old');
  const old = await backup();
  assert.deepEqual([old.state, old.found], ['failure', 'the last one ended 37 h ago: s3://vault/old']);
  await report(1, 's3://vault/new');
  assert.deepEqual(await backup(), {
    check: 'backup',
    state: 'ok',
    found: 'the last one ended 1 h ago: s3://vault/new',
    foundCode: 'last-backup',
    advice: null,
    adviceCode: null,
    values: { hours: 1, place: 's3://vault/new' },
  });
  const seconds = (await age()) ?? assert.fail();
  assert.equal(Math.round(seconds / 3_600), 1);
});

test('gauges of the database are read at each scrape, and absent while the database is away', async (t) => {
  const started = await startTestService();
  t.after(started.stop);
  await started.createMerchant();
  const way = await openWay(started.url);
  t.after(way.close);
  const db = openDatabase(way.url, 'scrip-test');
  t.after(() => db.close());
  const failures: unknown[] = [];
  const log = started.service.log.child({});
  log.error = ((...given: unknown[]) => failures.push(given)) as typeof log.error;
  const read = createGauges(createService({ ...started.service, db, readDb: db, log }), undefined);
  const text = await read();
  assert.deepEqual(failures, []);
  assert.equal(sampleOf(text, 'scrip_database_up'), 1);
  assert.equal(sampleOf(text, 'scrip_batches_processing'), 0);
  assert.equal(sampleOf(text, 'scrip_webhooks_due'), 0);
  assert.equal(sampleOf(text, 'scrip_webhook_endpoints{state="disabled"}'), 0);
  assert.equal(sampleOf(text, 'scrip_floats_low{currency="USD"}'), 0);
  assert.ok((sampleOf(text, 'scrip_database_bytes') ?? 0) > 1_000_000);
  // The books have no day yet, and a database elsewhere has its own backups: the age is absent, not zero.
  assert.equal(sampleOf(text, 'scrip_last_close_seconds'), undefined);
  assert.equal(sampleOf(text, 'scrip_last_backup_seconds'), undefined);

  way.set('closed');
  const away = await read();
  assert.equal(sampleOf(away, 'scrip_database_up'), 0);
  assert.equal(sampleOf(away, 'scrip_database_bytes'), undefined);
});

test('an outage is not logged by each gauge, a fault in a statement is', async (t) => {
  const { service, stop } = await startTestService();
  t.after(stop);
  const logged = async (code: string) => {
    const lines: unknown[] = [];
    const log = service.log.child({});
    log.error = ((...given: unknown[]) => void lines.push(given)) as typeof log.error;
    const query = async () => {
      throw Object.assign(new Error('refused'), { code });
    };
    await createGauges({ ...service, log, db: { ...service.db, query } }, undefined)();
    return lines.length > 0;
  };
  const outages = await Promise.all(['28P01', '53300', 'EPOOLEXHAUSTED', 'ECONNREFUSED'].map(logged));
  assert.deepEqual(outages, [false, false, false, false]);
  assert.deepEqual(await Promise.all(['57014', '42P01'].map(logged)), [true, true]);
});

test('gauges show late work, low floats and blocked keys under the names that the alerts use', async (t) => {
  const hooked = await Hooked.open(t);
  await hooked.stop();
  const { till, service } = hooked;
  await hooked.add(t, null);
  const voucher = await till.voucher();
  await till.done((DIALECTS[0] ?? assert.fail()).redeem(voucher, 1, 'late'));
  const { context } = await authenticate(service, till.merchant.authorization);
  await generate(context, { reference: 'stalled', quantity: 5_000, value: undefined });
  const { url } = till.testService;
  for (const text of [
    `update webhook_deliveries set due_at = now() - interval '1 hour'`,
    `update batches set progressed_at = now() - interval '1 hour' where status = 'PROCESSING'`,
    `update batches set expires_at = now() - interval '2 hours' where status = 'COMPLETED'`,
    `update jobs set due_at = now() - interval '1 hour'`,
    "update webhook_endpoints set disabled_at = now(), disabled_reason = 'GONE'",
    'update floats set low_minor = balance_minor + 1',
    `insert into api_key_days (key_id, day, guesses, blocked_at)
      select id, (now() at time zone 'UTC')::date, 500, now() from api_keys limit 1
      on conflict (key_id, day) do update set guesses = 500, blocked_at = now()`,
    `update migrations set applied_at = now() - interval '40 hours'`,
    'select open_days(database_time())',
    `update book_days set starts_at = now() - interval '50 hours'
      where starts_at = (select min(starts_at) from book_days)`,
  ])
    await asOwner(url, `set search_path = scrip; ${text}`);
  const text = await createGauges(service, tmpdir())();
  const above = (sample: string, least: number) =>
    assert.ok((sampleOf(text, sample) ?? -1) >= least, `${sample}: ${sampleOf(text, sample)}`);
  above('scrip_webhooks_late_seconds', 3_600);
  above('scrip_webhooks_due', 1);
  above('scrip_batches_stalled_seconds', 3_600);
  above('scrip_sweep_late_seconds', 7_200);
  above('scrip_jobs_late_seconds', 3_600);
  above('scrip_jobs_due', 1);
  above('scrip_webhook_endpoints{state="disabled"}', 1);
  above('scrip_floats_low{currency="USD"}', 1);
  above('scrip_keys_blocked', 1);
  // Never backed up, and never closed.
  above('scrip_last_backup_seconds', 40 * 3_600);
  above('scrip_last_close_seconds', 50 * 3_600);
  above('scrip_guesses_today', 500);
  above('scrip_disk_free_bytes', 1);
});
