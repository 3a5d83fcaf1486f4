import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readPages } from '../../docs/site/pages.ts';
import { probeMetrics } from '../../src/cli/probe.ts';
import { createGauges } from '../../src/monitor/gauges.ts';
import { createMetrics } from '../../src/monitor/metrics.ts';
import { startTestService } from '../support/harness.ts';
import { findInstalled } from '../support/stand-in.ts';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFile(new URL(path, ROOT), 'utf8');

/**
 * The names of all metrics, as the process and the database report them, without the suffixes of histograms.
 */
async function names(): Promise<Set<string>> {
  const started = await startTestService();
  try {
    const metrics = createMetrics();
    metrics.watchPools(started.service.db.pools);
    const texts = [metrics.text(), createGauges(started.service, undefined)(), probeMetrics().text()];
    const text = (await Promise.all(texts)).join('\n');
    return new Set([...text.matchAll(/^# TYPE (scrip_\w+)/gm)].map(([, name = '']) => name));
  } finally {
    await started.stop();
  }
}

const usedIn = (text: string) =>
  [...text.matchAll(/\bscrip_[a-z_]+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, ''));

test('the alerts and the dashboard use existing metrics, and the page lists each metric', async () => {
  const known = await names();
  for (const file of ['deploy/prometheus/alerts.yaml', 'deploy/grafana/scrip.json'])
    for (const name of usedIn(await read(file))) assert.ok(known.has(name), `${file} uses ${name}`);
  const page = new Set(usedIn((await readPages()).get('docs/how-to/monitor.md')?.text ?? ''));
  for (const name of known) assert.ok(page.has(name), `docs/how-to/monitor.md lacks ${name}`);
});

test('each alert has a section in the runbook, and each section an alert', async () => {
  const rules = await read('deploy/prometheus/alerts.yaml');
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);
  const runbooks = [...rules.matchAll(/runbook_url: .*\/docs\/guides\/how-to\/monitor\.html#(\w+)/g)].map(
    ([, anchor]) => anchor,
  );
  assert.deepEqual(
    runbooks,
    alerts.map((name) => name.toLowerCase()),
  );
  const sections = [...(await read('docs/how-to/monitor.md')).matchAll(/^### (\w+)/gm)].map(
    ([, name]) => name,
  );
  assert.deepEqual(sections, alerts);
});

test('each alert fires once in the tests of promtool, and none in a healthy service', async (t) => {
  const alerts = [...(await read('deploy/prometheus/alerts.yaml')).matchAll(/- alert: (\w+)/g)];
  const provoked = [...(await read('deploy/prometheus/alerts.test.yaml')).matchAll(/alertname="(\w+)"/g)];
  const namesOf = (found: RegExpExecArray[]) => found.map(([, name]) => name).sort();
  assert.deepEqual(namesOf(provoked), namesOf(alerts));
  const promtool = findInstalled(t, 'prometheus/usr/bin/promtool', 'promtool');
  if (promtool === undefined) return;
  const run = (...args: string[]) =>
    promisify(execFile)(promtool, args, { cwd: fileURLToPath(new URL('deploy/prometheus', ROOT)) });
  await run('test', 'rules', 'alerts.test.yaml');
  await run('check', 'config', 'prometheus.yaml');
});
