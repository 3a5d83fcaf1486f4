import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freePort } from '../../soak/process.ts';
import { Installation } from '../support/installation.ts';
import { sampleOf } from '../support/metrics.ts';

async function scrape(url: string): Promise<string> {
  const response = await fetch(url);
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  return response.text();
}

test('the metrics of a service add up its processes, and need a free port', async (t) => {
  const installation = await Installation.make(t);
  const port = await freePort();
  installation.settings['SCRIP_METRICS_PORT'] = String(port);
  const url = await installation.serve('--processes', '2');
  for (let call = 0; call < 4; call++) await fetch(`${url}/api/v2/transactions`);
  await installation.json`backup create ${installation.at('backups')}`;
  const text = await scrape(`http://127.0.0.1:${port}/metrics`);
  assert.equal(sampleOf(text, 'scrip_calls_total{variant="b",operation="listTransactions",status="01"}'), 4);
  assert.equal(sampleOf(text, 'scrip_database_up'), 1);
  assert.ok((sampleOf(text, 'scrip_last_backup_seconds') ?? -1) >= 0);
  assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 404);
  await installation.fails(/port \d+ at 127.0.0.1 is in use: set SCRIP_METRICS_PORT to another one/, [
    'serve',
  ]);
});
