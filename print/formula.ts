/** Signs with which a formula begins, and their full-width forms. */
const BEGINNING = /^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;
/** The same after what another spreadsheet, with another separator, takes for the end of a cell. */
const WITHIN = /([,;\t\r\n]"*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g;

/** Returns the text of a cell with an apostrophe in front of what a spreadsheet would run as a formula. */
export function withoutFormula(text: string): string {
  const within = text.replace(WITHIN, "$1'");
  return BEGINNING.test(text) ? `'${within}` : within;
}
