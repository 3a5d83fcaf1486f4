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
import { type Given, keptIn, numberOf } from './scenario.ts';
import { Stage } from './stage.ts';
import { coresInUse } from './usage.ts';

type Shape = {
  readonly seconds: number;
  readonly turns: number;
  readonly sizes: readonly { readonly vouchers: number; readonly entries: number }[];
  readonly redemptions: number;
  /** A folder in which the databases of `growth` stay. */
  readonly keep: string | undefined;
};

/** The parts beside the operations. The last ones leave many vouchers behind. */
const PARTS = {
  latency: (stage: Stage, { seconds, turns }: Shape) => measureLatency(stage, seconds, turns),
  overload: (stage: Stage, { seconds }: Shape) => measureOverload(stage, seconds),
  crowds: (stage: Stage, { seconds }: Shape) => measureCrowds(stage, seconds),
  processes: (stage: Stage, { seconds, turns }: Shape) => measureProcesses(stage, seconds, turns),
  start: () => measureStart(),
  generate: (stage: Stage, { seconds, turns }: Shape) => measureGenerate(stage, seconds, turns),
  download: (stage: Stage, { seconds, turns }: Shape) => measureDownload(stage, seconds, turns),
  growth: (_stage: Stage, { sizes, ...shape }: Shape) => measureGrowth(sizes, shape),
  bloat: (stage: Stage, { redemptions }: Shape) => measureBloat(stage, redemptions),
};

/** Parts that take too long for every run. */
const LONG = ['growth', 'bloat'];

/** Measures the suite or the named parts of it, and writes the report of the whole suite. */
export async function run(given: Given): Promise<void> {
  const { words, values } = given;
  const operations = Object.keys(OPERATIONS) as OperationName[];
  const wanted = (name: string) => (words.length === 0 ? !LONG.includes(name) : words.includes(name));
  const entries = String(values['entries']).split(',').map(Number);
  const sizes = String(values['vouchers'])
    .split(',')
    .map((vouchers, index) => ({
      vouchers: Number(vouchers),
      entries: entries[index] ?? entries.at(-1) ?? 0,
    }));
  const [seconds, turns] = [numberOf(given, 'seconds'), numberOf(given, 'turns')];
  const shape = { seconds, turns, sizes, redemptions: numberOf(given, 'redemptions'), keep: keptIn(given) };
  const others = await coresInUse();
  const stage = await Stage.open();
  const some = operations.filter(wanted);
  const report: Record<string, unknown> =
    some.length > 0 ? { operations: await measureOperations(stage, some, seconds, turns) } : {};
  for (const [name, measure] of Object.entries(PARTS))
    if (wanted(name)) report[name === 'overload' ? 'beyond' : name] = await measure(stage, shape);
  if (words.length === 0 || values['report']) await writeReport(stage, others, report);
}
