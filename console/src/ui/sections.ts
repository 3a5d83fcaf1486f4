import type { Field } from '../described.ts';
import type { Catalogue } from '../i18n/en.ts';

type Title = keyof Catalogue['sections'];

export type Section = { readonly title: Title | undefined; readonly fields: readonly Field[] };

/** The fields of a form by their sections. What is in none comes last, as the reason does. */
export function sectionsOf(fields: readonly Field[]): readonly Section[] {
  const titles = [...new Set(fields.map(({ section }) => section))];
  const sections = titles.map((title) => ({
    title,
    fields: fields.filter(({ section }) => section === title),
  }));
  return sections.sort((one, other) => Number(!one.title) - Number(!other.title));
}
