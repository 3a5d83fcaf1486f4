import { invalid } from '../problem.ts';

const CHECK_MODULUS = 97;

/** Returns an IBAN or another number of an account as it is compared: without spaces, in capital letters. */
export const accountNumber = (text: string): string => text.replace(/\s/g, '').toUpperCase();

/** Returns an account number as lists show it: the first two and the last four characters. */
export const maskedAccount = (number: string): string =>
  number.length > 8 ? `${number.slice(0, 2)}…${number.slice(-4)}` : number;

/** Returns whether a text has the form of an IBAN. */
export const looksLikeIban = (number: string) => /^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/.test(number);

/** Returns whether a text is an IBAN with valid check digits. */
export function isIban(iban: string): boolean {
  if (!looksLikeIban(iban)) return false;
  const digits = [...iban.slice(4), ...iban.slice(0, 4)].map((each) => Number.parseInt(each, 36)).join('');
  return [...digits].reduce((rest, digit) => (rest * 10 + Number(digit)) % CHECK_MODULUS, 0) === 1;
}

/** Returns an IBAN without its spaces. @throws Problem that names the field if it is not an IBAN */
export function requireIban(text: string, field: string): string {
  const iban = accountNumber(text);
  if (!isIban(iban)) throw invalid(field, 'iban', 'is not an IBAN: its check digits or its form are wrong');
  return iban;
}
