/** A card as it is typed, pasted or scanned. */

/** A PIN is missing if the bar code was scanned, which holds the code alone. */
type Card = { readonly code: string; readonly pin?: string };
/** The GTIN is that of the product, if the bar code has it. */
export type Serial = { readonly serialNumber: string; readonly gtin?: string };
export type Read = Card | Serial | { readonly digits: number | undefined };

const CODE = 12;
const PIN = 4;
/** The number of a chocolate bar has 8 digits, or 12 and more. */
const SERIAL = 11;
/** A GTIN and a serial number, as a bar code of GS1 has them. Some scanners write its kind in front of it. */
const GS1 = /^(?:\]e0)?01([0-9]{14})21([1-9][0-9]{0,14})$/;

/**
 * Reads a code (12 digits), a code with its PIN (16 digits, as in the QR code of a card), or a serial number,
 * typed or as its bar code has it.
 * @returns the number of digits if it is none of them; undefined for a text that is no number
 */
export function readCard(text: string): Read {
  const typed = text.replace(/[\s-]/g, '');
  const [, gtin, serialNumber] = GS1.exec(typed) ?? [];
  if (gtin && serialNumber) return { serialNumber, gtin };
  if (!/^[0-9]+$/.test(typed)) return { digits: undefined };
  if (typed.length === CODE) return { code: typed };
  if (typed.length === CODE + PIN) return { code: typed.slice(0, CODE), pin: typed.slice(CODE) };
  if (typed.length === SERIAL && !typed.startsWith('0')) return { serialNumber: typed };
  return { digits: typed.length };
}

/** Returns a code as receipts and lists show it, such as `4829****7641`. */
export const maskCode = (code: string): string => `${code.slice(0, 4)}****${code.slice(-4)}`;
