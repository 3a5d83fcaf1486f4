import { execFileSync } from 'node:child_process';
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { drawBatches, tellDownload, tellGenerate } from './batches.report.ts';
import type { BloatResult } from './bloat.ts';
import { barChart } from './chart.ts';
import type { CrowdsResult } from './crowds.ts';
import { cellsOf, filled, median, TIMES, table, whole } from './figures.ts';
import type { BatchesResult } from './generate.ts';
import type { GrowthResult } from './growth.ts';
import type { LatencyResult, ProcessesResult, StartResult } from './limits.ts';
import { digestOf, MEASURED, markOf, UNKNOWN } from './measured.ts';
import type { OperationsResult } from './operations.ts';
import { tellCrowds, tellOverload } from './overload.report.ts';
import type { OverloadResult } from './overload.ts';
import { GENERATOR } from './play.ts';
import type { Stage } from './stage.ts';
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
/** If others use more cores, a run says little, and later runs are not compared with it. */
const QUIET_CORES = 0.5;
const QUIET_LOAD = 1;

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
  /** The cores that others used just before it began. */
  readonly coresOfOthers?: number;
  /** Of earlier runs: the load average, in which their own installation remained. */
  readonly others?: number;
  /** Of the measured files, by part of the report. Runs from before there were digests have none. */
  readonly digests?: Readonly<Record<string, string>>;
} & Report;

/**
 * Writes the report of a run: parts that it did not measure keep the figures of the last run that did.
 * @param others the cores that others used just before it began
 */
export async function writeReport(stage: Stage, others: number, report: Report): Promise<void> {
  const { rows } = await stage.owner.query("select current_setting('server_version') as version");
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  const own: Past = {
    at: new Date().toISOString().slice(0, 16),
    machine: machine(String(rows[0]?.version)),
    commit,
    coresOfOthers: Number(others.toFixed(1)),
    digests: Object.fromEntries(Object.entries(MEASURED).map(([part, paths]) => [part, digestOf(paths)])),
    ...report,
  };
  await mkdir(FOLDER, { recursive: true });
  const history = await readHistory();
  for (const line of regressions(history, own)) process.stdout.write(`REGRESSION ${line}\n`);
  await appendFile(HISTORY, `${JSON.stringify(own)}\n`);
  const all = [...history, own];
  const latest = <Key extends keyof Report>(key: Key) => all.findLast((past) => past[key] !== undefined);
  const sections = Object.keys(SECTIONS).flatMap((key) => sectionOf(key as keyof Report, latest));
  const page = await readFile(PAGE, 'utf8');
  const figures = sections.join('\n\n');
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
  const before = history.filter((past) => past.machine === own.machine && isQuiet(past)).map(ratiosOf);
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

const isQuiet = ({ coresOfOthers, others = 0 }: Past) =>
  coresOfOthers === undefined ? others <= QUIET_LOAD : coresOfOthers <= QUIET_CORES;

const when = (past: Past) => {
  const { at, commit, machine: on, coresOfOthers, others } = past;
  const what =
    coresOfOthers === undefined
      ? `${others} other processes wanted the machine when it began`
      : `others used ${coresOfOthers} cores just before it began`;
  const disturbed = isQuiet(past) ? '' : ` **Disturbed: ${what}.**`;
  return `*${at.replace('T', ' ')} UTC, after commit ${commit}. ${on}.*${disturbed}`;
};

function tellOperations({ yardsticks, all }: OperationsResult): Section {
  const rows = all.map((each) => [
    each.operation,
    whole(each.perSecond),
    `**${each.ratios.function.toFixed(2)}**`,
    each.ratios.plain.toFixed(2),
    each.ratios.bare.toFixed(2),
    ...cellsOf(each).slice(1),
    `${whole(each.serviceCpuUs)} + ${whole(each.databaseCpuUs)}`,
    `${whole(each.serviceMb)} + ${whole(each.databaseMb)}`,
  ]);
  const head = ['operation', 'a second', '× function', '× plain', '× bare', ...TIMES, 'CPU µs', 'memory MB'];
  return [
    'Operations at the greatest load',
    `Medians of ${all[0]?.turns ?? 0} turns. The yardsticks of the same turns: ${whole(yardsticks.function)} stored-function calls,
${whole(yardsticks.plain)} plain transactions, ${whole(yardsticks.bare)} answers of bare Fastify a second. CPU is for each request, service + database.

${table(head, rows)}

![Requests a second](performance/operations.svg)`,
  ];
}

function tellLatency({ alone, half, greatest }: LatencyResult): Section {
  const rows = [
    ['one client', ...cellsOf(alone)],
    ['half of the greatest load', ...cellsOf(half)],
    ['the greatest load', ...cellsOf(greatest)],
  ];
  return ['Redemptions by load', table(['load', 'a second', ...TIMES], rows)];
}

function tellProcesses(all: ProcessesResult): Section {
  const rows = all.map(({ processes, ratio, run }) => [String(processes), ...cellsOf(run), ratio.toFixed(2)]);
  return ['Processes', table(['processes', 'redemptions a second', ...TIMES, '× function'], rows)];
}

function tellStart({ readyMs }: StartResult): Section {
  return ['Start', `With an existing embedded database, ready after **${whole(readyMs)} ms**.`];
}

function tellGrowth(growth: GrowthResult): Section {
  const rows = growth.map((each) => [
    whole(each.vouchers),
    whole(each.journalRows),
    whole(each.databaseMb),
    `${each.indexBytes.vouchers} / ${each.indexBytes.journal}`,
    ...each.figures.map(({ perSecond, ratio }) => `${whole(perSecond)} (${ratio.toFixed(2)})`),
  ]);
  const names = growth[0]?.figures.map(({ operation }) => operation) ?? [];
  const head = ['vouchers', 'journal rows', 'MB', 'index bytes a voucher / a row', ...names];
  return [
    'Growth',
    `A second, and in parentheses the ratio to the stored function on the same tables.\n\n${table(head, rows)}\n\n![Growth](performance/growth.svg)`,
  ];
}

function tellBloat({ vouchers, redemptions, hotShare, tables }: BloatResult): Section {
  const told = ({ tableMb, indexesMb }: { tableMb: number; indexesMb: number }) =>
    `${whole(tableMb)} + ${whole(indexesMb)}`;
  const rows = tables.map(({ table: name, before, after, anew }) => [
    name,
    told(before),
    told(after),
    told(anew),
  ]);
  const head = ['MB, with indexes', 'before', 'after', 'rewritten'];
  return [
    'Bloat',
    `${whole(redemptions)} redemptions from ${whole(vouchers)} vouchers; ${(hotShare * 100).toFixed(1)} % of the updates of vouchers stayed on their page and wrote no index.\n\n${table(head, rows)}`,
  ];
}

type Section = readonly [heading: string, text: string];

/** The sections of the report, in their order. */
const SECTIONS = {
  operations: tellOperations,
  generate: tellGenerate,
  download: tellDownload,
  latency: tellLatency,
  beyond: tellOverload,
  crowds: tellCrowds,
  processes: tellProcesses,
  start: tellStart,
  growth: tellGrowth,
  bloat: tellBloat,
} satisfies { readonly [Key in keyof Report]-?: (result: Exclude<Report[Key], undefined>) => Section };

/** The section of a part, with the time of its last run; none if it was never measured. */
function sectionOf(key: keyof Report, latest: (key: keyof Report) => Past | undefined): string[] {
  const past = latest(key);
  if (!past) return [];
  const [heading, text] = (SECTIONS[key] as (result: unknown) => Section)(past[key]);
  const mark = markOf(MEASURED[key], past.digests?.[key] ?? UNKNOWN);
  const paragraphs = `${when(past)}\n\n${text}`.split('\n\n');
  const shown = paragraphs.map((each) => (/^[|!]/.test(each) ? each : filled(each)));
  return [`### ${heading}\n\n${mark}\n\n${shown.join('\n\n')}`];
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
