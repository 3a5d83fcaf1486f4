/** Numbers as people type them: with the separators of the language of the page. */

const SEPARATORS = { en: { group: ',', decimal: '.' }, de: { group: '.', decimal: ',' } } as const;

/**
 * Reads a number, grouped as the language does it or not at all. Where there is nothing to group, a point
 * and a comma both stand before the decimals.
 * @returns undefined for nothing, and the text itself where it is no number: the service then refuses it
 */
export function readNumber(
  text: string,
  language: keyof typeof SEPARATORS,
  isWhole = false,
): number | string | undefined {
  const { group, decimal } = SEPARATORS[language];
  const typed = text.replace(/[\s\u00a0\u202f]/g, '').replace(/^[\u2212\u2013]/, '-');
  if (typed === '') return undefined;
  const isGrouped = new RegExp(`^-?[1-9]\\d{0,2}(\\${group}\\d{3})+(\\${decimal}\\d+)?$`).test(typed);
  const plain = isGrouped ? typed.replaceAll(group, '').replace(decimal, '.') : typed.replace(',', '.');
  return (isWhole ? /^-?\d+$/ : /^-?\d+(\.\d+)?$/).test(plain) ? Number(plain) : text;
}
