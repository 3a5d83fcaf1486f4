import { GAUGES } from '../../src/monitor/gauges.ts';

/** The gauges of the state of the database, as rows of a table in Markdown. */
export function gaugesText(): string {
  return Object.entries(GAUGES)
    .map(([name, { help, label }]) => `| \`${name}${label ? `{${label}}` : ''}\` | ${help} |`)
    .join('\n');
}
