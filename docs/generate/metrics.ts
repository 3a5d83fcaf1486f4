import { PROBE_METRICS } from '../../src/cli/probe.ts';
import { DATABASE_UP, GAUGES } from '../../src/monitor/gauges.ts';
import { METRICS } from '../../src/monitor/metrics.ts';

const row = (name: string, labels: readonly string[], help: string) =>
  `| \`${name}${labels.length > 0 ? `{${labels.join(',')}}` : ''}\` | ${help} |`;

type Described = { readonly help: string; readonly labelNames: readonly string[] };

const rowsOf = (all: Readonly<Record<string, Described>>) =>
  Object.entries(all).map(([name, { labelNames, help }]) => row(name, labelNames, help));

/**
 * The metrics of a process, and the gauges of the state of the database, as rows of a table in Markdown.
 * @param of `probe`: those of `scrip probe` instead
 */
export function metricsText(of: string): string {
  if (of === 'probe') return rowsOf(PROBE_METRICS).join('\n');
  return [
    ...rowsOf(METRICS),
    row(DATABASE_UP.name, [], DATABASE_UP.help),
    ...Object.entries(GAUGES).map(([name, { label, help }]) => row(name, label ? [label] : [], help)),
  ].join('\n');
}
