/**
 * The load: a process of its own, so that what it costs is not the service's. It sends one redemption after the other on
 * each connection, every one under a reference of its own, and prints what it saw as JSON.
 */
import { readFileSync } from 'node:fs';
import autocannon from 'autocannon';

type Plan = {
  readonly url: string;
  readonly authorization: string;
  readonly vouchersFile: string;
  readonly connections: number;
  readonly seconds: number;
  readonly run: string;
};

const plan = JSON.parse(process.argv[2] ?? '{}') as Plan;
const vouchers = JSON.parse(readFileSync(plan.vouchersFile, 'utf8')) as { code: string; pin: string }[];
let next = 0;

const result = await autocannon({
  url: plan.url,
  method: 'POST',
  connections: plan.connections,
  duration: plan.seconds,
  headers: { authorization: plan.authorization, 'content-type': 'application/json' },
  requests: [
    {
      setupRequest(request) {
        const voucher = vouchers[next % vouchers.length];
        next++;
        // The least amount, so that no voucher runs dry within a run.
        const body = `{"code":"${voucher?.code}","pin":"${voucher?.pin}","amount":0.01,"reference":"${plan.run}-${next}"}`;
        return { ...request, body };
      },
    },
  ],
});

process.stdout.write(
  JSON.stringify({
    perSecond: result['2xx'] / result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    failed: result.non2xx + result.errors + result.timeouts,
  }),
);
