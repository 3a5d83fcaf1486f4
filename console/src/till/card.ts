/** A card as it is typed, pasted or scanned. */

/** A PIN is missing if the bar code was scanned, which holds the code alone. */
type Card = { readonly code: string; readonly pin?: string };
export type Read = Card | { readonly serialNumber: string } | { readonly digits: number | undefined };

const CODE = 12;
const PIN = 4;

/**
 * Reads a code (12 digits), a code with its PIN (16 digits, as in the QR code of a card), or a serial number.
 * @returns the number of digits if it is none of them; undefined for a text that is no number
 */
export function readCard(text: string): Read {
  const typed = text.replace(/[\s-]/g, '');
  if (!/^[0-9]+$/.test(typed)) return { digits: undefined };
  if (typed.length === CODE) return { code: typed };
  if (typed.length === CODE + PIN) return { code: typed.slice(0, CODE), pin: typed.slice(CODE) };
  return typed.length < CODE && !typed.startsWith('0') ? { serialNumber: typed } : { digits: typed.length };
}

/** Returns a code as receipts and lists show it, such as `4829****7641`. */
export const maskCode = (code: string): string => `${code.slice(0, 4)}****${code.slice(-4)}`;
