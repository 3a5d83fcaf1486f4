import { readDocument, type Shape } from '../../console/src/described.ts';
import { labels as german } from '../../console/src/i18n/de.labels.ts';
import { de } from '../../console/src/i18n/de.ts';
import { labels as english } from '../../console/src/i18n/en.labels.ts';
import { en } from '../../console/src/i18n/en.ts';
import { rowsOf, type Writing, withoutIds } from '../../console/src/ui/change-rows.ts';
import { describeApi } from '../../src/http/operator/openapi.ts';
import { OPERATOR_APIS } from '../../src/http/operator/routes.ts';

/** Changes of the audit as the console writes them. */

const NAMES = { merchant: 'Kyoto Tea House', product: 'Gift card', user: 'ann@example.com' };
export const LANGUAGES = ['en', 'de'] as const;

const shapes = new Map<string, Shape>(
  OPERATOR_APIS.flatMap((api) => [...readDocument(describeApi(api) as never, api.name).shapes]).reverse(),
);
const UNKNOWN = { isKnown: false, isMoney: false, isList: false, isSecret: false, format: '', words: [] };

/** A console that knows every name. */
export const writingIn = (language: (typeof LANGUAGES)[number]): Writing => ({
  language,
  texts: language === 'en' ? en : de,
  labels: language === 'en' ? english : german,
  shapeOf: (field) => shapes.get(field) ?? UNKNOWN,
  nameOf: (kind) => NAMES[kind],
});

/** What no person should read. */
const WRONG = {
  'an object': /\[object/,
  JSON: /[[{]"|\b(true|false|null|undefined)\b/,
  'an amount of the service': /\b[A-Z]{3} -?\d+\.\d\d\b.*/,
  'an id': /[0-9a-f]{8}-[0-9a-f]{4}-/,
  'a time of the service': /\dT\d\d:/,
};

/** The fields whose values are ids and codes that have names. */
const NAMED: Readonly<Record<string, string>> = { merchant: NAMES.merchant, product: NAMES.product };

export type Written = { readonly texts: readonly string[]; readonly wrong: readonly string[] };

/**
 * Writes a change in both languages, as a list of the audit does.
 * @returns the texts, and what is wrong in them
 */
export function writeChange(action: string, before: unknown, after: unknown): Written {
  const texts: string[] = [];
  const wrong: string[] = [];
  for (const language of LANGUAGES) {
    const writing = writingIn(language);
    for (const { name, label, old, now } of rowsOf(writing, withoutIds(before), withoutIds(after))) {
      if (!(name.replace(/Ppm$/, '') in german.fields)) wrong.push(`${action} ${name}: no German label`);
      const named = NAMED[writing.shapeOf(name).format ?? ''];
      for (const text of [label, now, ...(old === undefined ? [] : [old])]) {
        texts.push(text);
        for (const [what, pattern] of Object.entries(WRONG))
          if (pattern.test(text)) wrong.push(`${language} ${action} ${name}: ${what}: ${text}`);
        if (named && text !== label && text !== named && text !== '–')
          wrong.push(`${language} ${action} ${name}: no name: ${text}`);
      }
    }
  }
  return { texts, wrong };
}
