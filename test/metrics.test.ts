import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { freePort } from '../soak/process.ts';
import { createService } from '../src/context.ts';
import { openDatabase } from '../src/db/pool.ts';
import { buildServer } from '../src/http/server.ts';
import { createMetrics } from '../src/metrics.ts';
import { createGauges } from '../src/monitor/gauges.ts';
import { startTestService } from './harness.ts';
import { Installation } from './installation.ts';
import { openWay } from './way.ts';

/** The value of a sample, by its name and labels as they are written. */
function sampleOf(text: string, sample: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${sample} `));
  return line === undefined ? undefined : Number(line.slice(sample.length + 1));
}

async function scrape(url: string): Promise<string> {
  const response = await fetch(url);
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  return response.text();
}

/** A service that counts, with a merchant. */
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

test('calls are counted by operation, variant and status, with their latency and how they were gathered', async (t) => {
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
  const calls = (variant: string) =>
    `scrip_calls_total{variant="${variant}",operation="checkBalance",status="14"}`;
  assert.deepEqual([sampleOf(text, calls('a')), sampleOf(text, calls('b'))], [1, 2]);
  assert.equal(sampleOf(text, 'scrip_call_seconds_count{variant="b",operation="checkBalance"}'), 2);
  assert.ok((sampleOf(text, 'scrip_gather_rows_sum') ?? 0) >= 3);
  assert.ok(!text.includes('nowhere'));
  assert.ok(!text.includes('100000000000'));
});

test('what the database knows is read when it is asked for, and is absent while the database is away', async (t) => {
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
  // Nothing was closed or backed up: there is no age, rather than one of zero.
  assert.equal(sampleOf(text, 'scrip_last_close_seconds'), undefined);
  assert.equal(sampleOf(text, 'scrip_last_backup_seconds'), undefined);

  way.set('closed');
  const away = await read();
  assert.equal(sampleOf(away, 'scrip_database_up'), 0);
  assert.equal(sampleOf(away, 'scrip_database_bytes'), undefined);
});

test('the processes of a service are one in its metrics, and a port in use is one line', async (t) => {
  const installation = await Installation.make(t);
  const port = await freePort();
  installation.settings['SCRIP_METRICS_PORT'] = String(port);
  const url = await installation.serve('--processes', '2');
  for (let call = 0; call < 4; call++) await fetch(`${url}/api/v2/transactions`);
  await installation.json('backup', 'create', installation.at('backups'));
  const text = await scrape(`http://127.0.0.1:${port}/metrics`);
  assert.equal(sampleOf(text, 'scrip_calls_total{variant="b",operation="listTransactions",status="01"}'), 4);
  assert.equal(sampleOf(text, 'scrip_database_up'), 1);
  assert.ok((sampleOf(text, 'scrip_last_backup_seconds') ?? -1) >= 0);
  assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 404);
  await installation.fails(/port \d+ at 127.0.0.1 is in use: set SCRIP_METRICS_PORT to another one/, [
    'serve',
  ]);
});
