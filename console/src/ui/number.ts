/** Numbers as people type them: with the separators of the language of the page. */

const SEPARATORS = { en: { group: ',', decimal: '.' }, de: { group: '.', decimal: ',' } } as const;

export type Language = keyof typeof SEPARATORS;

/** Keeps the formats that it makes, since to make one takes longer than to use it for a page of rows. */
function keeping<Options, Format>(make: (locale: string, options?: Options) => Format) {
  const made = new Map<string, Format>();
  return (locale: string, options?: Options): Format => {
    const key = locale + JSON.stringify(options);
    const format = made.get(key) ?? make(locale, options);
    made.set(key, format);
    return format;
  };
}

export const numberFormat = keeping(
  (locale, options?: Intl.NumberFormatOptions) => new Intl.NumberFormat(locale, options),
);
export const dateFormat = keeping(
  (locale, options?: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(locale, options),
);

/** Writes a number as the locale does, but with the minus sign of typography instead of a hyphen. */
export function writeNumber(value: number, locale: string, options?: Intl.NumberFormatOptions): string {
  return numberFormat(locale, options).format(value).replace('-', '\u2212');
}

/**
 * Reads a number, grouped as in the language or not at all. Without grouping, both a point and a comma
 * separate the decimals.
 * @returns undefined for an empty text, and the text itself if it is not a number, which the service then
 * refuses
 */
export function readNumber(text: string, language: Language, isWhole = false): number | string | undefined {
  const { group, decimal } = SEPARATORS[language];
  const typed = text.replace(/[\s\u00a0\u202f]/g, '').replace(/^[\u2212\u2013]/, '-');
  if (typed === '') return undefined;
  const isGrouped = new RegExp(`^-?[1-9]\\d{0,2}(\\${group}\\d{3})+(\\${decimal}\\d+)?$`).test(typed);
  const plain = isGrouped ? typed.replaceAll(group, '').replace(decimal, '.') : typed.replace(',', '.');
  return (isWhole ? /^-?\d+$/ : /^-?\d+(\.\d+)?$/).test(plain) ? Number(plain) : text;
}
