import { type Definition, formatsOf, titleOf } from '../../src/books/reports/report.ts';
import { ALL_REPORTS } from '../../src/books/reports/reports.ts';

/** The reports: what each is for, or its columns. */
export function reportsText(of: string): string {
  if (of === 'columns') return ALL_REPORTS.map(columnsText).join('\n');
  return [
    '| report | who needs it, and when |',
    '| --- | --- |',
    ...ALL_REPORTS.map(({ report, name, use }) => `| ${report} ${name} | ${use.replace(/^For /, '')} |`),
  ].join('\n');
}

type Columns = Pick<Definition, 'columns' | 'section'>;

function columnsText(each: (typeof ALL_REPORTS)[number]): string {
  const { report, title } = each;
  const tables: [string, Columns][] =
    'lines' in each
      ? [['', each as Columns]]
      : [
          ...each.tables.map((table): [string, Columns] => [table.section ?? '', table]),
          ...Object.entries(each.breakdowns ?? {}).flatMap(([what, broken = []]) =>
            broken.map((table): [string, Columns] => [`${table.section ?? ''} by ${what}`.trim(), table]),
          ),
        ];
  return [
    `## ${report}: ${title}`,
    '',
    '| section | column | title | format |',
    '| --- | --- | --- | --- |',
    ...tables.flatMap(([section, table]) =>
      Object.entries(formatsOf(table)).map(
        ([name, format]) => `| ${section} | \`${name}\` | ${titleOf(name)} | ${format} |`,
      ),
    ),
    '',
  ].join('\n');
}
