const DATE_TIME =
  /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt ]([01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?([Zz]|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?$/;
const LAST_YEAR = 9_999;

/**
 * Reads an ISO 8601 date and time. Seconds may be left out, and so may the offset: then it is UTC, as everything the
 * service says is. (A date alone is no point in time and is not taken.)
 * @returns undefined for anything else, and for days that do not exist
 */
export function parseDateTime(text: string): Date | undefined {
  const parts = DATE_TIME.exec(text);
  if (!parts) return undefined;
  const [, year, month, day, , offset] = parts;
  // Date would turn 30 February into 2 March.
  if (Number(day) > new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()) return undefined;
  const instant = text
    .toUpperCase()
    .replace(' ', 'T')
    .replace(/([+-]\d{2})(\d{2})$/, '$1:$2');
  const date = new Date(offset ? instant : `${instant}Z`);
  // An offset may carry it out of the years that have four digits, as every date-time of an answer has.
  const utcYear = date.getUTCFullYear();
  return utcYear >= 0 && utcYear <= LAST_YEAR ? date : undefined;
}
