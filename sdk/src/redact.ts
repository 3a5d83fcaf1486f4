const MASK = '****';

/** Makes texts of strangers fit for errors: without what must not be read in them, and not endlessly long. */
export type Redact = {
  /** Words for people, which need no numbers: whatever could be a code or a PIN is taken out, sent or not. */
  words(text: string): string;
  /** An id, which may hold numbers: only what is known to be confidential, or has the form of a code, is taken out. */
  id(text: string): string;
};

const LONGEST_TEXT = 300;

/** @param confidential codes and secrets of the call */
export function redactor(confidential: readonly string[]): Redact {
  // The longest first: a code of 16 digits begins with one of 12.
  const known = confidential.filter((value) => value.length > 4).sort((one, other) => other.length - one.length);
  const id = (text: string) =>
    known.reduce((clean, value) => clean.replaceAll(value, MASK), text).replace(/(?<!\w)\d{12}(\d{4})?(?!\w)/g, MASK);
  return {
    id,
    words: (text) =>
      id(text)
        .replace(/\d{4,}/g, MASK)
        .slice(0, LONGEST_TEXT),
  };
}

/** Masks a voucher code, in whichever spelling: its first four digits, four asterisks, its last four; never the PIN. */
export function maskCode(code: string): string {
  if (code.includes('*')) return code;
  const digits = code.slice(0, 12);
  return `${digits.slice(0, 4)}${MASK}${digits.slice(8)}`;
}
