/** The kinds of things that a search text could name. */
export type Guess = {
  readonly kind:
    | 'code-with-pin'
    | 'code'
    | 'masked'
    | 'four-digits'
    | 'serial'
    | 'settlement'
    | 'token'
    | 'transaction'
    | 'reference';
  readonly text: string;
};

/** The full code that was searched last: only here, since browsers store addresses and their history. */
export const searched: { code: string | undefined } = { code: undefined };

/** Guesses the kind by the form of the text. Sixteen digits are a code with its PIN, and are never sent. */
export function guess(typed: string): Guess | undefined {
  const text = typed.trim();
  if (text === '') return undefined;
  const digits = text.replace(/[\s-]/g, '');
  if (/^\d{16}$/.test(digits)) return { kind: 'code-with-pin', text: '' };
  // As people write it down: with stars, crosses or dots.
  if (/^\d{4}[*x….]+\d{4}$/i.test(digits))
    return { kind: 'masked', text: `${digits.slice(0, 4)}****${digits.slice(-4)}` };
  // Vouchers are found by the first and the last digits together, since an index leads from both to them.
  if (/^[*x….]+\d{4}$/i.test(digits)) return { kind: 'four-digits', text };
  // Of a token that somebody has found, only its first characters leave the page.
  if (/^scrop_\w{4}/.test(text)) return { kind: 'token', text: text.slice(0, 10) };
  if (/^[1-9]\d{0,8}-\d{4}-\d{4,9}$/.test(text)) return { kind: 'settlement', text };
  if (/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text))
    return { kind: 'transaction', text: text.toLowerCase() };
  // A serial number has 11 to 15 digits, and 12 of them could be a code.
  if (/^[1-9]\d{11}$/.test(digits)) return { kind: 'code', text: digits };
  if (/^[1-9]\d{10,14}$/.test(digits)) return { kind: 'serial', text: digits };
  return { kind: 'reference', text };
}

/** Whether a text that names nothing may be four digits of a code, which are not enough to find it. */
export const isFourDigits = (text: string) => /^\d{4}$/.test(text);
