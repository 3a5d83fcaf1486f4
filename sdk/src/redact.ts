const MASK = '****';

/** Digits that belong to no longer number or word. */
const alone = (digits: string) => new RegExp(`(?<![\\p{L}\\d])${digits}(?![\\p{L}\\d])`, 'gu');

/** Makes texts of strangers fit for errors: without what must not be read in them, and not endlessly long. */
export type Redact = (text: string) => string;

const LONGEST_TEXT = 300;

/**
 * @param confidential codes, PINs and secrets of the call. A short one (a PIN) is only taken out where it stands alone:
 *   its four digits are in many a harmless number.
 */
export function redactor(confidential: readonly string[]): Redact {
  const long = confidential.filter((value) => value.length > 4).sort((one, other) => other.length - one.length);
  const short = confidential.filter((value) => /^\d{1,4}$/.test(value)).map(alone);
  return (text) => {
    let clean = text;
    for (const value of long) clean = clean.replaceAll(value, MASK);
    for (const pattern of short) clean = clean.replace(pattern, MASK);
    return clean.slice(0, LONGEST_TEXT);
  };
}

/** Masks a voucher code, in whichever spelling: its first four digits, four asterisks, its last four; never the PIN. */
export function maskCode(code: string): string {
  if (code.includes('*')) return code;
  const digits = code.slice(0, 12);
  return `${digits.slice(0, 4)}${MASK}${digits.slice(8)}`;
}
