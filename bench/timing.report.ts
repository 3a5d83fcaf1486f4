import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { curveChart } from './chart.ts';
import { filled } from './figures.ts';
import { digestOf, MEASURED, markOf, UNKNOWN } from './measured.ts';
import { type Difference, percentiles, quantile, type Sorted } from './statistics.ts';

/**
 * The report: a table and a chart for each environment in docs/explanation/guessing.md, from the figures in
 * its folder.
 */

const PAGE = new URL('../docs/explanation/guessing.md', import.meta.url);
const FOLDER = new URL('../docs/explanation/timing/', import.meta.url);
const FIGURES = new URL('timing.jsonl', FOLDER);
const BEGIN = '<!-- timing: written by the scenario timing of npm run bench -->';
const END = '<!-- end of timing -->';

type Pair = Difference & { readonly first: string; readonly second: string };

export type SubjectResult = {
  readonly subject: string;
  readonly took: ReadonlyMap<string, Sorted>;
  readonly differences: readonly Pair[];
};

type Surrounding = 'alone' | 'beside a load';

type Figures = {
  readonly at: string;
  /** Of the measured files. */
  readonly digest?: string;
  readonly subjects: readonly {
    readonly subject: string;
    readonly samples: number;
    readonly cases: readonly {
      readonly name: string;
      readonly p99: number;
      readonly percentiles: readonly number[];
    }[];
    readonly differences: readonly Pair[];
  }[];
};

/** Writes the figures of one environment. The other one keeps its figures. */
export async function writeTimingReport(
  surrounding: Surrounding,
  results: readonly SubjectResult[],
): Promise<void> {
  await mkdir(FOLDER, { recursive: true });
  const known = JSON.parse(await readFile(FIGURES, 'utf8').catch(() => '{}')) as Partial<
    Record<Surrounding, Figures>
  >;
  const figures: Figures = {
    at: new Date().toISOString().slice(0, 16).replace('T', ' '),
    digest: digestOf(MEASURED.timing),
    subjects: results.map(toFigures),
  };
  const all = { ...known, [surrounding]: figures };
  await writeFile(FIGURES, `${JSON.stringify(all)}\n`);
  const sections: string[] = [];
  for (const [name, each] of Object.entries(all)) {
    const file = `timing-${name.replaceAll(' ', '-')}.svg`;
    const panels = each.subjects.map(({ subject, cases }) => ({
      title: subject,
      curves: cases.map((one) => ({ label: one.name, percentiles: one.percentiles })),
    }));
    await writeFile(
      new URL(file, FOLDER),
      curveChart(`Share of answers that are there, by milliseconds (${name})`, panels),
    );
    sections.push(tell(name, each, file));
  }
  const page = await readFile(PAGE, 'utf8');
  const before = page.slice(0, page.indexOf(BEGIN) + BEGIN.length);
  await writeFile(PAGE, `${before}\n\n${sections.join('\n\n')}\n\n${page.slice(page.indexOf(END))}`);
}

function toFigures({ subject, took, differences }: SubjectResult): Figures['subjects'][number] {
  const round = (ms: number) => Math.round(ms * 10_000) / 10_000;
  const cases = [...took].map(([name, all]) => ({
    name,
    p99: round(quantile(all, 0.99)),
    percentiles: percentiles(all).map(round),
  }));
  const samples = Math.min(...[...took.values()].map(({ length }) => length));
  return { subject, samples, cases, differences };
}

const us = (ms: number) => String(Math.round(ms * 1000));

function tell(name: string, { at, digest = UNKNOWN, subjects }: Figures, file: string): string {
  const cases = subjects.flatMap(({ subject, cases: all }) =>
    all.map((one) => {
      const [low, middle, high] = [25, 50, 75].map((percent) => us(one.percentiles[percent] ?? 0));
      return `| ${subject} | ${one.name} | ${low} | ${middle} | ${high} | ${us(one.p99)} |`;
    }),
  );
  const pairs = subjects.flatMap(({ subject, differences }) =>
    differences.map((each) => {
      const interval = `${us(each.medianMs)} (${us(each.lowMs)} to ${us(each.highMs)})`;
      const right = `${(50 * (1 + each.distance)).toFixed(1)} %`;
      return `| ${subject} | ${each.first} / ${each.second} | ${interval} | ${(each.longer * 100).toFixed(1)} % | ${right} |`;
    }),
  );
  const samples = Math.min(...subjects.map((each) => each.samples)).toLocaleString('en');
  const conditions = `*${at} UTC, ${samples} answers of each case, in random order; 16 clients where answers come in steps, else one.* Microseconds.`;
  return `#### Measured ${name}

${markOf(MEASURED.timing, digest)}

${filled(conditions)}

| subject | case | lower quartile | median | upper quartile | p99 |
| --- | --- | --: | --: | --: | --: |
${cases.join('\n')}

| subject | told apart? | medians differ by (99 %) | second is longer | one guess is right |
| --- | --- | --: | --: | --: |
${pairs.join('\n')}

![Distributions](timing/${file})`;
}
