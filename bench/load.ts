/**
 * The load generator without wrk: autocannon, in a process of its own, so that its cost does not count as
 * the service's. Plays a file of requests (requests.ts) and prints the result as JSON, as wrk.lua does.
 */
import { readFileSync } from 'node:fs';
import autocannon from 'autocannon';
import type { LoadPlan } from './play.ts';
import { SEPARATOR } from './requests.ts';
import { timesOf } from './statistics.ts';

const plan = JSON.parse(process.argv[2] ?? '{}') as LoadPlan;
const requests = readFileSync(plan.file, 'utf8')
  .split(SEPARATOR)
  .map((text) => {
    const [head = '', body = ''] = text.split('\r\n\r\n');
    const [first = '', ...lines] = head.split('\r\n');
    const [method = 'GET', path = '/'] = first.split(' ');
    const headers = Object.fromEntries(lines.map((line) => line.split(': ') as [string, string]));
    delete headers['Content-Length'];
    return { method, path, headers, body } as autocannon.Request;
  });

const accepted: number[] = [];
let refused = 0;
let broken = 0;
let number = 0;
let startedAt = 0;

const tracker = autocannon(
  {
    url: plan.url,
    connections: plan.connections,
    duration: plan.seconds,
    // Built once, before the start: building them for each request would cost more than the service's work.
    setupClient(client) {
      const own = requests.filter((_, index) => index % plan.connections === number);
      number++;
      client.setRequests(own);
    },
  },
  () => {
    const seconds = (performance.now() - startedAt) / 1000;
    process.stdout.write(
      JSON.stringify({
        perSecond: accepted.length / seconds,
        ...timesOf(accepted),
        failed: broken + refused,
        answered: accepted.length + refused,
      }),
    );
  },
);
tracker.on('start', () => {
  startedAt = performance.now();
});
tracker.on('response', (_client, status, _bytes, durationMs) => {
  if (status === 503) refused++;
  else accepted.push(durationMs);
  if (status !== 200 && status !== 503) broken++;
});
tracker.on('reqError', () => {
  broken++;
});
