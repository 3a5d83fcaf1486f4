import { DATABASE_UP, GAUGES } from '../../src/monitor/gauges.ts';
import { METRICS } from '../../src/monitor/metrics.ts';

const row = (name: string, labels: readonly string[], help: string) =>
  `| \`${name}${labels.length > 0 ? `{${labels.join(',')}}` : ''}\` | ${help} |`;

/** The metrics of a process, and the gauges of the state of the database, as rows of a table in Markdown. */
export function metricsText(): string {
  return [
    ...Object.entries(METRICS).map(([name, { labelNames, help }]) => row(name, labelNames, help)),
    row(DATABASE_UP.name, [], DATABASE_UP.help),
    ...Object.entries(GAUGES).map(([name, { label, help }]) => row(name, label ? [label] : [], help)),
  ].join('\n');
}
