import type { Field } from '../described.ts';
import { useTexts } from '../i18n/index.tsx';
import { labelOf } from './format.ts';

type Named = Readonly<Record<string, string>>;

/** Kinds that are also the name of a state. */
const KINDS: Named = { closing: 'closingBalance' };

/** The names of the API's fields, states and operations in the language of the page. */
export function useWords() {
  const { fields, details, words, actions, hints, nouns, changes } = useTexts();
  const noun = (name: string) => (nouns as Named)[name] ?? labelOf(name);
  const known = actions as Readonly<Record<string, readonly string[]>>;
  const verb = (name: string) => known[name]?.[0] ?? (changes as Named)[name];
  return {
    label: (name: string) => (fields as Named)[name] ?? (details as Named)[name] ?? labelOf(name),
    word: (value: string) => (words as Named)[value] ?? value,
    /** The name of a kind of booking, or of another word in capitals. */
    kind: (value: string) => (words as Named)[KINDS[value] ?? value] ?? labelOf(value),
    action: (name: string) => ({ label: verb(name) ?? labelOf(name), text: known[name]?.[1] ?? '' }),
    noun,
    /** `settlement.pay` → Settlement: Pay. */
    title: (operation: string) => {
      const [of = '', what = ''] = operation.split('.');
      return what === '' ? noun(of) : `${noun(of)}: ${verb(operation) ?? labelOf(what)}`;
    },
    hint: (operation: string, { name }: Field) =>
      (hints as Named)[`${operation}.${name}`] ?? (hints as Named)[name],
  };
}
