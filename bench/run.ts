/**
 * `npm run bench`: the throughput and latency of the service over HTTP, with everything switched on,
 * beside yardsticks of the same run on the same machine. Compare the ratios: machines are shared, and a
 * figure alone says little.
 *
 *   npm run bench                              the suite; its report goes to docs/explanation/performance.md
 *   npm run bench -- redeem balance --seconds 3 --turns 1    parts of it, printed only
 *   npm run bench -- growth --vouchers 100000,1000000 --entries 10   a long part, on its own
 *   npm run bench -- bloat --redemptions 1000000                       another one
 */
import { parseArgs } from 'node:util';
import { leavingNothing } from '../test/support/leave-nothing.ts';
import { measureBloat } from './bloat.ts';
import { measureCrowds } from './crowds.ts';
import { measureDownload } from './download.ts';
import { measureGenerate } from './generate.ts';
import { measureGrowth } from './growth.ts';
import { measureLatency, measureProcesses, measureStart } from './limits.ts';
import { measureOperations } from './operations.ts';
import { measureOverload } from './overload.ts';
import { writeReport } from './report.ts';
import { OPERATIONS, type OperationName } from './requests.ts';
import { Stage } from './stage.ts';

/** Parts of the suite beside the operations. */
const PARTS = [
  'generate',
  'download',
  'latency',
  'overload',
  'crowds',
  'processes',
  'start',
  'growth',
  'bloat',
] as const;
/** Parts that take too long for every run. */
const LONG = ['growth', 'bloat'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '4' },
    turns: { type: 'string', default: '3' },
    vouchers: { type: 'string', default: '100000,1000000' },
    /** Journal rows of each voucher, those of the last size for all further ones. */
    entries: { type: 'string', default: '10' },
    redemptions: { type: 'string', default: '1000000' },
    report: { type: 'boolean', default: false },
  },
});

const names = Object.keys(OPERATIONS) as OperationName[];
const unknown = positionals.find((name) => ![...names, ...PARTS].includes(name as OperationName));
if (unknown !== undefined) {
  process.stderr.write(`there is no part "${unknown}": ${[...names, ...PARTS].join(', ')}\n`);
  process.exit(2);
}
const whole = positionals.length === 0;
const wants = (name: string) => (whole ? !LONG.includes(name) : positionals.includes(name));
const seconds = Number(values.seconds);
const turns = Number(values.turns);
const entries = values.entries.split(',').map(Number);
const sizes = values.vouchers.split(',').map((vouchers, index) => ({
  vouchers: Number(vouchers),
  entries: entries[Math.min(index, entries.length - 1)] as number,
}));

await leavingNothing(async () => {
  const stage = await Stage.open();
  const operations = names.filter(wants);
  const report = {
    ...(operations.length > 0 && { operations: await measureOperations(stage, operations, seconds, turns) }),
    ...(wants('latency') && { latency: await measureLatency(stage, seconds, turns) }),
    ...(wants('overload') && { beyond: await measureOverload(stage, seconds) }),
    ...(wants('crowds') && { crowds: await measureCrowds(stage, seconds) }),
    ...(wants('processes') && { processes: await measureProcesses(stage, seconds, turns) }),
    ...(wants('start') && { start: await measureStart() }),
    // Last, since they leave many vouchers behind.
    ...(wants('generate') && { generate: await measureGenerate(stage, seconds, turns) }),
    ...(wants('download') && { download: await measureDownload(stage, seconds, turns) }),
    ...(wants('growth') && {
      growth: await measureGrowth(stage, sizes, seconds, turns),
    }),
    ...(wants('bloat') && { bloat: await measureBloat(stage, Number(values.redemptions)) }),
  };
  if (whole || values.report) await writeReport(stage, report);
});
