import { createContext, type ReactNode, use, useState } from 'react';
import { de } from './de.ts';
import { type Catalogue, en } from './en.ts';

const CATALOGUES: Readonly<Record<Language, Catalogue>> = { en, de };
export type Language = 'en' | 'de';

type Choice = { readonly language: Language; readonly texts: Catalogue; choose(language: Language): void };

const Context = createContext<Choice | undefined>(undefined);
const STORED = 'scrip.language';

function preferred(): Language {
  const stored = localStorage.getItem(STORED);
  if (stored === 'en' || stored === 'de') return stored;
  return navigator.language.startsWith('de') ? 'de' : 'en';
}

/** The language of the page: the stored choice, else that of the browser. */
export function Languages({ children }: { readonly children: ReactNode }) {
  const [language, setLanguage] = useState(preferred);
  document.documentElement.lang = language;
  const choose = (chosen: Language) => {
    localStorage.setItem(STORED, chosen);
    setLanguage(chosen);
  };
  return <Context value={{ language, texts: CATALOGUES[language], choose }}>{children}</Context>;
}

export function useLanguage(): Choice {
  const choice = use(Context);
  if (!choice) throw new Error('useLanguage outside of Languages');
  return choice;
}

export function useTexts(): Catalogue {
  return useLanguage().texts;
}
