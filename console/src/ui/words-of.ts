import { labelOf } from '../../../src/label.ts';
import type { Labels } from '../i18n/en.labels.ts';

/** The verb of an operation, such as `suspend`, as the text of a button. */
function verbOf(noun: string, verb: string): string {
  if (verb === 'create') return `Create ${noun.replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase())}`;
  return verb === 'set' ? 'Edit' : labelOf(verb);
}

/** The names of the API's fields, states and operations in a language. */
export function wordsOf({ fields, words, actions, nouns, checks }: Labels) {
  const noun = (name: string) => nouns[name] ?? labelOf(name);
  const known = (value: string, field: string) => words[`${field}.${value}`] ?? words[value];
  const verb = (operation: string) => {
    const [of = '', what = ''] = operation.split('.');
    return actions[operation] ?? verbOf(noun(of), what);
  };
  return {
    label: (name: string) => fields[name] ?? labelOf(name),
    /** A word of a closed list, or a text of a person, which stays as it is. */
    word: (value: string, field = 'state') => known(value, field) ?? value,
    /** A word of a closed list. */
    kind: (value: string, field = 'kind') => known(value, field) ?? labelOf(value),
    action: verb,
    noun,
    /** A check of the reconciliation. */
    check: (name: string) => checks[name] ?? labelOf(name),
    /** `settlement.pay` → Settlement: Pay. */
    title: (operation: string) => {
      const [of = '', what = ''] = operation.split('.');
      return what === '' ? noun(of) : `${noun(of)}: ${verb(operation)}`;
    },
  };
}
