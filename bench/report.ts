import { execFileSync } from 'node:child_process';
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { cpus, loadavg, totalmem } from 'node:os';
import { drawBatches, tellDownload, tellGenerate } from './batches.report.ts';
import type { BloatResult } from './bloat.ts';
import { barChart } from './chart.ts';
import type { CrowdsResult } from './crowds.ts';
import type { BatchesResult } from './generate.ts';
import type { GrowthResult } from './growth.ts';
import type { LatencyResult, ProcessesResult, StartResult } from './limits.ts';
import { median } from './measure.ts';
import type { OperationsResult } from './operations.ts';
import { tellCrowds, tellOverload } from './overload.report.ts';
import type { OverloadResult } from './overload.ts';
import { GENERATOR } from './play.ts';
import type { Stage } from './stage.ts';
import { table } from './table.ts';
import { DATABASE_GENERATOR } from './yardstick.ts';

/**
 * The report: tables in docs/explanation/performance.md between two marks, charts and history in its folder.
 */

const PAGE = new URL('../docs/explanation/performance.md', import.meta.url);
const FOLDER = new URL('../docs/explanation/performance/', import.meta.url);
const HISTORY = new URL('history.jsonl', FOLDER);
const BEGIN = '<!-- figures: written by npm run bench -->';
const END = '<!-- end of figures -->';

/**
 * A ratio that falls so far below the median of earlier runs is reported. Machines vary by less.
 */
const REGRESSION = 0.85;
const COMPARED_RUNS = 5;
/** The load of the machine, in runnable processes, when the run began. */
const BUSY_WITH_OTHERS = Number((loadavg()[0] ?? 0).toFixed(1));
/** A run beside a higher load says little, and later runs are not compared with it. */
const QUIET = 1;

export type Report = {
  readonly operations?: OperationsResult;
  readonly generate?: BatchesResult;
  readonly download?: BatchesResult;
  readonly latency?: LatencyResult;
  readonly beyond?: OverloadResult;
  readonly crowds?: CrowdsResult;
  readonly processes?: ProcessesResult;
  readonly start?: StartResult;
  readonly growth?: GrowthResult;
  readonly bloat?: BloatResult;
};

/** The figures of a run that later runs are compared with. */
type Past = {
  readonly at: string;
  readonly machine: string;
  readonly commit: string;
  readonly others: number;
} & Report;

const whole = (figure: number) => Math.round(figure).toLocaleString('en');

/** Writes the report of a run: parts that it did not measure keep the figures of the last run that did. */
export async function writeReport(stage: Stage, report: Report): Promise<void> {
  const { rows } = await stage.owner.query("select current_setting('server_version') as version");
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  const own: Past = {
    at: new Date().toISOString().slice(0, 16),
    machine: machine(String(rows[0]?.version)),
    commit,
    others: BUSY_WITH_OTHERS,
    ...report,
  };
  await mkdir(FOLDER, { recursive: true });
  const history = await readHistory();
  for (const line of regressions(history, own)) process.stdout.write(`REGRESSION ${line}\n`);
  await appendFile(HISTORY, `${JSON.stringify(own)}\n`);
  const all = [...history, own];
  const latest = <Key extends keyof Report>(key: Key) => all.findLast((past) => past[key] !== undefined);
  const sections = [
    tellOperations(latest('operations')),
    withHead(latest('generate'), ({ generate }) => generate && tellGenerate(generate)),
    withHead(latest('download'), ({ download }) => download && tellDownload(download)),
    tellLatency(latest('latency')),
    withHead(latest('beyond'), ({ beyond }) => beyond && tellOverload(beyond)),
    withHead(latest('crowds'), ({ crowds }) => crowds && tellCrowds(crowds)),
    tellProcesses(latest('processes')),
    tellStart(latest('start')),
    tellGrowth(latest('growth')),
    tellBloat(latest('bloat')),
  ];
  const page = await readFile(PAGE, 'utf8');
  const figures = sections.filter((section) => section !== '').join('\n\n');
  const before = page.slice(0, page.indexOf(BEGIN) + BEGIN.length);
  await writeFile(PAGE, `${before}\n\n${figures}\n\n${page.slice(page.indexOf(END))}`);
  const operations = latest('operations')?.operations;
  if (operations) await drawOperations(operations);
  const { generate } = latest('generate') ?? {};
  const { download } = latest('download') ?? {};
  await writeFile(new URL('batches.svg', FOLDER), drawBatches(generate, download));
  const growth = latest('growth')?.growth;
  if (growth) await drawGrowth(growth);
}

function machine(postgres: string): string {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 1024 ** 3);
  return `${cpus().length} × ${cpu?.model.trim()}, ${memory} GB; Node ${process.versions.node}, PostgreSQL ${postgres}; load by ${GENERATOR} and ${DATABASE_GENERATOR}`;
}

async function readHistory(): Promise<Past[]> {
  const text = await readFile(HISTORY, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Past);
}

/** Ratios well below those of the last runs on the same kind of machine. */
function regressions(history: readonly Past[], own: Past): string[] {
  const before = history.filter((past) => past.machine === own.machine && past.others <= QUIET).map(ratiosOf);
  return [...ratiosOf(own)].flatMap(([name, ratio]) => {
    const earlier = before.flatMap((ratios) => ratios.get(name) ?? []).slice(-COMPARED_RUNS);
    const usual = median(earlier);
    return ratio < usual * REGRESSION ? [`${name}: ${ratio.toFixed(2)}, was ${usual.toFixed(2)}`] : [];
  });
}

/** The results of a run beside its yardsticks. */
function ratiosOf({ operations, generate, download }: Past): Map<string, number> {
  const batches = Object.entries({ generate, download }).flatMap(([name, result]) =>
    [result?.small, result?.large].flatMap((each): [string, number][] =>
      each ? [[`${name} ${whole(each.quantity)} × COPY`, each.ratios.copy]] : [],
    ),
  );
  const all = operations?.all ?? [];
  return new Map([
    ...all.map(({ operation, ratios }): [string, number] => [
      `${operation} × stored function`,
      ratios.function,
    ]),
    ...batches,
  ]);
}

const when = ({ at, commit, machine: on, others }: Past) => {
  const disturbed =
    others > QUIET ? ` **Disturbed: ${others} other processes wanted the machine when it began.**` : '';
  return `*${at.replace('T', ' ')} UTC, after commit ${commit}. ${on}.*${disturbed}`;
};

function tellOperations(past: Past | undefined): string {
  if (!past?.operations) return '';
  const { yardsticks, all } = past.operations;
  const rows = all.map((each) => [
    each.operation,
    whole(each.perSecond),
    `**${each.ratios.function.toFixed(2)}**`,
    each.ratios.plain.toFixed(2),
    each.ratios.bare.toFixed(2),
    each.p50Ms.toFixed(1),
    each.p99Ms.toFixed(1),
    each.p999Ms.toFixed(1),
    `${whole(each.serviceCpuUs)} + ${whole(each.databaseCpuUs)}`,
    `${whole(each.serviceMb)} + ${whole(each.databaseMb)}`,
  ]);
  const head = [
    'operation',
    'a second',
    '× function',
    '× plain',
    '× bare',
    'p50 ms',
    'p99 ms',
    'p99.9 ms',
    'CPU µs',
    'memory MB',
  ];
  return `### Operations at the greatest load

${when(past)} Medians of ${all[0]?.turns ?? 0} turns. The yardsticks of the same turns: ${whole(yardsticks.function)} stored-function calls,
${whole(yardsticks.plain)} plain transactions, ${whole(yardsticks.bare)} answers of bare Fastify a second. CPU is for each request, service + database.

${table(head, rows)}

![Requests a second](performance/operations.svg)`;
}

const times = (name: string, each: { perSecond: number; p50Ms: number; p99Ms: number; p999Ms: number }) => [
  name,
  whole(each.perSecond),
  each.p50Ms.toFixed(2),
  each.p99Ms.toFixed(1),
  each.p999Ms.toFixed(1),
];

function tellLatency(past: Past | undefined): string {
  if (!past?.latency) return '';
  const { alone, half, greatest } = past.latency;
  const rows = [
    times('one client', alone),
    times('half of the greatest load', half),
    times('the greatest load', greatest),
  ];
  return `### Redemptions by load\n\n${when(past)}\n\n${table(['load', 'a second', 'p50 ms', 'p99 ms', 'p99.9 ms'], rows)}`;
}

/** A section of another file: its heading, when it was measured, and its text. */
function withHead(
  past: Past | undefined,
  write: (past: Past) => readonly [string, string] | undefined,
): string {
  const [heading, text] = (past && write(past)) ?? [];
  return past && text !== undefined ? `### ${heading}\n\n${when(past)}\n\n${text}` : '';
}

function tellProcesses(past: Past | undefined): string {
  if (!past?.processes) return '';
  const rows = past.processes.map(({ processes, ratio, run }) => [
    ...times(String(processes), run),
    ratio.toFixed(2),
  ]);
  return `### Processes\n\n${when(past)}\n\n${table(['processes', 'redemptions a second', 'p50 ms', 'p99 ms', 'p99.9 ms', '× function'], rows)}`;
}

function tellStart(past: Past | undefined): string {
  if (!past?.start) return '';
  return `### Start\n\n${when(past)}\n\nWith an existing embedded database, ready after **${whole(past.start.readyMs)} ms**.`;
}

function tellGrowth(past: Past | undefined): string {
  if (!past?.growth) return '';
  const rows = past.growth.map((each) => [
    whole(each.vouchers),
    whole(each.journalRows),
    whole(each.databaseMb),
    `${each.indexBytes.vouchers} / ${each.indexBytes.journal}`,
    ...each.figures.map(({ perSecond, ratio }) => `${whole(perSecond)} (${ratio.toFixed(2)})`),
  ]);
  const names = past.growth[0]?.figures.map(({ operation }) => operation) ?? [];
  const head = ['vouchers', 'journal rows', 'MB', 'index bytes a voucher / a row', ...names];
  return `### Growth\n\n${when(past)} A second, and in parentheses the ratio to the stored function on the same tables.\n\n${table(head, rows)}\n\n![Growth](performance/growth.svg)`;
}

function tellBloat(past: Past | undefined): string {
  if (!past?.bloat) return '';
  const { vouchers, redemptions, hotShare, tables } = past.bloat;
  const told = ({ tableMb, indexesMb }: { tableMb: number; indexesMb: number }) =>
    `${whole(tableMb)} + ${whole(indexesMb)}`;
  const rows = tables.map(({ table: name, before, after, anew }) => [
    name,
    told(before),
    told(after),
    told(anew),
  ]);
  const head = ['MB, with indexes', 'before', 'after', 'rewritten'];
  return `### Bloat\n\n${when(past)} ${whole(redemptions)} redemptions from ${whole(vouchers)} vouchers; ${(hotShare * 100).toFixed(1)} % of the updates of vouchers stayed on their page and wrote no index.\n\n${table(head, rows)}`;
}

async function drawOperations({ yardsticks, all }: OperationsResult): Promise<void> {
  const bars = [
    ...all.map((each) => ({
      label: each.operation,
      value: each.perSecond,
      note: `${whole(each.perSecond)}  (${each.ratios.function.toFixed(2)} ×)`,
    })),
    {
      label: 'pgbench: stored function',
      value: yardsticks.function,
      note: whole(yardsticks.function),
      muted: true,
    },
    {
      label: 'pgbench: plain transaction',
      value: yardsticks.plain,
      note: whole(yardsticks.plain),
      muted: true,
    },
  ];
  await writeFile(new URL('operations.svg', FOLDER), barChart('Requests a second (× stored function)', bars));
}

async function drawGrowth(growth: GrowthResult): Promise<void> {
  const bars = growth.flatMap((size) =>
    size.figures.map((each) => ({
      label: `${each.operation}, ${whole(size.vouchers)}`,
      value: each.perSecond,
      note: whole(each.perSecond),
    })),
  );
  await writeFile(
    new URL('growth.svg', FOLDER),
    barChart(
      'Requests a second by number of vouchers',
      bars.toSorted((one, other) => one.label.localeCompare(other.label, 'en', { numeric: true })),
    ),
  );
}
