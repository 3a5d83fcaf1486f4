/** What every scenario prints and sums up. */

export const print = (line: string) => void process.stdout.write(`${line}\n`);
export const whole = (figure: number) => Math.round(figure).toLocaleString('en');
export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The most columns of a line of a page. */
const COLUMNS = 110;

/** A paragraph in lines of at most 110 columns. */
export function filled(paragraph: string): string {
  return paragraph.split(/\s+/).reduce((text, word) => {
    const isFull = text.length - text.lastIndexOf('\n') + word.length > COLUMNS;
    return `${text}${isFull ? '\n' : ' '}${word}`;
  });
}

/** The median of several figures. */
export function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((one, other) => one - other);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[half] ?? 0) : ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2;
}

/** The figures in the middle of several turns, each by itself, and the most that failed in one. */
export function middle<Figures>(turns: readonly Figures[]): Figures {
  const [first] = turns;
  if (typeof first === 'number') return median(turns as readonly number[]) as Figures;
  if (typeof first !== 'object' || first === null) return first as Figures;
  const of = (name: string) => turns.map((turn) => (turn as Readonly<Record<string, unknown>>)[name]);
  const names = Object.keys(first);
  return Object.fromEntries(
    names.map((name) => [name, name === 'failed' ? Math.max(...(of(name) as number[])) : middle(of(name))]),
  ) as Figures;
}

export type Times = { readonly p50Ms: number; readonly p99Ms: number; readonly p999Ms: number };
export type Rate = Times & { readonly perSecond: number };

/** The rate and the times of a load as cells of a table. */
export const cellsOf = ({ perSecond, p50Ms, p99Ms, p999Ms }: Rate) => [
  whole(perSecond),
  p50Ms.toFixed(p50Ms < 10 ? 2 : 1),
  p99Ms.toFixed(1),
  p999Ms.toFixed(1),
];

export const TIMES = ['p50 ms', 'p99 ms', 'p99.9 ms'];

export const textOf = ({ perSecond, p50Ms, p99Ms, p999Ms }: Rate) =>
  `${whole(perSecond)}/s, p50 ${p50Ms.toFixed(2)}, p99 ${p99Ms.toFixed(1)}, p99.9 ${p999Ms.toFixed(1)} ms`;

/** A table in Markdown: words on the left, figures on the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, index) => (index === 0 ? '---' : '--:'))), ...rows.map(line)].join(
    '\n',
  );
}
