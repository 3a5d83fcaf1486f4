import { createContext, type ReactNode, use, useEffect, useState } from 'react';
import type { Catalogue } from './en.ts';

/** A page loads the texts of its language alone. */
const LOAD: Readonly<Record<Language, () => Promise<Catalogue>>> = {
  en: async () => (await import('./en.ts')).en,
  de: async () => (await import('./de.ts')).de,
};
export type Language = 'en' | 'de';

type Choice = { readonly language: Language; readonly texts: Catalogue; choose(language: Language): void };

const Context = createContext<Choice | undefined>(undefined);
const STORED = 'scrip.language';

function preferred(): Language {
  const stored = localStorage.getItem(STORED);
  if (stored === 'en' || stored === 'de') return stored;
  return navigator.language.startsWith('de') ? 'de' : 'en';
}

// Loading begins with the page, not with its first render.
const begun = { language: preferred(), texts: LOAD[preferred()]() };

/** The language of the page: the stored choice, else that of the browser. */
export function Languages({ children }: { readonly children: ReactNode }) {
  const [language, setLanguage] = useState(preferred);
  const [loaded, setLoaded] = useState<{ language: Language; texts: Catalogue }>();
  useEffect(() => {
    let isWanted = true;
    const loading = language === begun.language ? begun.texts : LOAD[language]();
    void loading.then((texts) => {
      if (!isWanted) return;
      document.documentElement.lang = language;
      setLoaded({ language, texts });
    });
    return () => {
      isWanted = false;
    };
  }, [language]);
  const choose = (chosen: Language) => {
    localStorage.setItem(STORED, chosen);
    setLanguage(chosen);
  };
  if (!loaded) return null;
  return <Context value={{ ...loaded, choose }}>{children}</Context>;
}

export function useLanguage(): Choice {
  const choice = use(Context);
  if (!choice) throw new Error('useLanguage outside of Languages');
  return choice;
}

export function useTexts(): Catalogue {
  return useLanguage().texts;
}
