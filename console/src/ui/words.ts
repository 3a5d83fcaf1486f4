import { useTexts } from '../i18n/index.tsx';
import { wordsOf } from './words-of.ts';

/** The names of the API's fields, states and operations in the language of the page. */
export const useWords = () => wordsOf(useTexts());
