import type { Labels } from '../i18n/en.labels.ts';
import { useLanguage } from '../i18n/index.tsx';
import { wordsOf } from './words-of.ts';

/** The sign-in has none until somebody types. */
const NONE: Labels = { fields: {}, words: {}, nouns: {}, actions: {}, checks: {} };

export const useLabels = (): Labels => useLanguage().labels ?? NONE;

/** The names of the API's fields, states and operations in the language of the page. */
export const useWords = () => wordsOf(useLabels());
