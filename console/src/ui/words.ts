import { useTexts } from '../i18n/index.tsx';
import type { Field } from '../operations.ts';
import { labelOf } from './format.ts';

type Named = Readonly<Record<string, string>>;

/** What fields, states and operations of the API are called in the language of the page. */
export function useWords() {
  const { fields, words, actions, hints, nouns } = useTexts();
  const noun = (name: string) => (nouns as Named)[name] ?? labelOf(name);
  const known = actions as Readonly<Record<string, readonly string[]>>;
  return {
    label: (name: string) => (fields as Named)[name] ?? labelOf(name),
    word: (value: string) => (words as Named)[value] ?? value,
    /** Of a kind of booking, or of another word in capitals. */
    kind: (value: string) => (words as Named)[value] ?? labelOf(value),
    action: (name: string) => ({ label: known[name]?.[0] ?? labelOf(name), text: known[name]?.[1] ?? '' }),
    noun,
    /** `settlement.pay` → Settlement: Pay. */
    title: (operation: string) => {
      const [of = '', verb = ''] = operation.split('.');
      return verb === '' ? noun(of) : `${noun(of)}: ${known[operation]?.[0] ?? labelOf(verb)}`;
    },
    hint: (operation: string, { name }: Field) =>
      (hints as Named)[`${operation}.${name}`] ?? (hints as Named)[name],
  };
}
