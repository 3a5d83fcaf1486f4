/** A statement and its parameters. */
export type Sql = { readonly text: string; readonly values: readonly unknown[] };

/** The tag of every statement: what is interpolated becomes a parameter, never text. */
export function sql(strings: TemplateStringsArray, ...values: readonly unknown[]): Sql {
  let text = strings[0] ?? '';
  for (let index = 1; index < strings.length; index++) text += `$${index}${strings[index]}`;
  return { text, values };
}

/**
 * A statement of the hot path: prepared once a connection under its name, with columns of values as its
 * parameters. One that nobody at a till waits for says so: work in the background gives way to tills, not
 * to other such work.
 */
export type HotStatement = { readonly name: string; readonly text: string; readonly background?: true };

/**
 * Asks for nothing: it shows that the till's pool has a connection to spare, and that the server answers
 * on it.
 */
export const PING: HotStatement = { name: 'ping', text: 'select 1', background: true };

/**
 * An array parameter of numbers, bigints or uuids. Written by hand since none of these ever needs
 * quoting, which is what makes the driver's own array writer slow.
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
