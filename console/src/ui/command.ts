import type { Operation } from '../described.ts';

/**
 * Returns the command that does the same as a page.
 * @param given the values of the page, by the names of the fields
 */
export function commandOf(
  { command, fields }: Pick<Operation, 'command' | 'fields'>,
  given: Readonly<Record<string, string | undefined>>,
): string | null {
  if (command === null) return null;
  const words = fields.flatMap(({ name, option, type }) => {
    const value = given[name];
    if (!value || option === null) return [];
    if (type === 'secret') return [`--${option}`];
    return type === 'boolean' ? (value === 'true' ? [`--${option}`] : []) : [`--${option} ${quoted(value)}`];
  });
  const args = fields.flatMap(({ name, isArgument }) => (isArgument && given[name] ? [given[name]] : []));
  return ['scrip', command, ...args.map(quoted), ...words, '--json'].join(' ');
}

/** Quotes a value for the shell. */
const quoted = (value: string) =>
  /^[\w.:@%+,/-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
