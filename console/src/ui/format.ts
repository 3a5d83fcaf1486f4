import { useLanguage } from '../i18n/index.tsx';
import { formatOf } from './format-of.ts';

/** Numbers, money and times in the language of the page. */
export const useFormat = () => formatOf(useLanguage().language);
