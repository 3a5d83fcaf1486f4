/** What a bank's app reads from a code for a transfer in euros (EPC069-12, version 2). */
export type Transfer = { readonly holder: string; readonly iban: string; readonly reference: string };

/** The longest name of a holder, and the longest text of a transfer. */
const HOLDER_MAX = 70;
const TEXT_MAX = 140;

/** Returns the text of the code. The amount is left empty, and typed in the app. */
export function transferCode({ holder, iban, reference }: Transfer): string {
  const head = ['BCD', '002', '1', 'SCT', '', holder.slice(0, HOLDER_MAX), iban];
  const [amount, purpose, structured] = ['', '', ''];
  return [...head, amount, purpose, structured, reference.slice(0, TEXT_MAX)].join('\n');
}
