import { guess } from '../search.ts';
import type { Filters } from './address.ts';

/** The saved views of lists: addresses with their filters and columns, under names. */

export type View = {
  /** The path of the page with its parameters. */
  readonly address: string;
  readonly name: string;
};

/**
 * Returns the address of a list, which is the same for the same view.
 * @param names the parameters that the list has; others are left out
 */
export function addressOf(path: string, search: Filters, names: readonly string[]): string {
  const given = new URLSearchParams();
  for (const name of [...names].sort()) if (search[name]) given.set(name, search[name]);
  return given.size === 0 ? path : `${path}?${given}`;
}

export const parametersOf = (address: string): Filters =>
  Object.fromEntries(new URLSearchParams(address.split('?')[1]));

/** Whether a text could hold a code or a token, which a browser must not store. */
export function couldBeSecret(text: string): boolean {
  const found = guess(text);
  switch (found?.kind) {
    case 'code':
    case 'code-with-pin':
      return true;
    case 'token':
      // A filter has only the first characters of a token.
      return found.text !== text;
    case 'reference':
      return /(\d[\s-]*){12}/.test(text);
    default:
      return false;
  }
}
