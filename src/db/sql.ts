/** A statement and its parameters. */
export type Sql = { readonly text: string; readonly values: readonly unknown[] };

/** The tag of every statement. Interpolated values become parameters, never text. */
export function sql(strings: TemplateStringsArray, ...values: readonly unknown[]): Sql {
  let text = strings[0] ?? '';
  for (let index = 1; index < strings.length; index++) text += `$${index}${strings[index]}`;
  return { text, values };
}

/**
 * A statement of the hot path: prepared once for each connection, with arrays as parameters.
 * `background`: no till waits for it. Background work waits for tills, not for other background work.
 */
export type HotStatement = { readonly name: string; readonly text: string; readonly background?: true };

/**
 * An empty statement. It shows that the pool of the tills has a free connection, and that the server
 * answers.
 */
export const PING: HotStatement = { name: 'ping', text: 'select 1', background: true };

/**
 * An array parameter of numbers, bigints or uuids. None of them needs quoting, which makes the driver's
 * own writer slow.
 */
export function plainArray(values: readonly (string | number | bigint | null)[]): string {
  let text = '{';
  for (let index = 0; index < values.length; index++) {
    if (index > 0) text += ',';
    text += values[index] ?? 'NULL';
  }
  return `${text}}`;
}

/** An array parameter of texts, quoted. */
export function textArray(values: readonly (string | null)[]): string {
  let text = '{';
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (index > 0) text += ',';
    text += value === null || value === undefined ? 'NULL' : `"${value.replace(/["\\]/g, '\\$&')}"`;
  }
  return `${text}}`;
}

/** An array parameter of byte strings. */
export function bytesArray(values: readonly Buffer[]): string {
  return `{${values.map((value) => `"\\\\x${value.toString('hex')}"`).join(',')}}`;
}
