import { createContext, type ReactNode, use, useEffect, useState } from 'react';
import { beginsOutside } from '../api.ts';
import { useApp } from '../ui/app.tsx';
import { useAtWork } from '../ui/at-work.ts';
import type { Labels } from './en.labels.ts';
import type { Catalogue, Faults } from './en.ts';

type Loaded = {
  readonly texts: Catalogue;
  /**
   * The meaning of problem codes and of field rules. In English, few: the service answers in English.
   */
  readonly problems: Readonly<Record<string, string>>;
  readonly faults: Faults;
};

/** What the pages behind the sign-in write the names and the sentences of the service with. */
type Labelled = {
  readonly labels: Labels;
  /** What a refusal says. The service says it in English. */
  readonly refusalOf?: (message: string, write: (value: string) => string) => string | undefined;
  /** Why figures have no entries. The service says it in English. */
  readonly unopened?: Readonly<Record<string, string>>;
};

/** A page loads only the texts of its language. */
const LOAD: Readonly<Record<Language, () => Promise<Loaded>>> = {
  en: async () => {
    const { en: texts, faults } = await import('./en.ts');
    return { texts, problems: {}, faults };
  },
  de: async () => {
    const [{ de: texts }, { problems, faults }] = await Promise.all([
      import('./de.ts'),
      import('./de.problems.ts'),
    ]);
    return { texts, problems, faults };
  },
};
const LOAD_LABELS: Readonly<Record<Language, () => Promise<Labelled>>> = {
  en: async () => await import('./en.labels.ts'),
  de: async () => {
    const [{ labels }, { unopened }, { refusalOf }] = await Promise.all([
      import('./de.labels.ts'),
      import('./de.figures.ts'),
      import('./de.refusals.ts'),
    ]);
    return { labels, unopened, refusalOf };
  },
};
export type Language = 'en' | 'de';

/** Each language, as it calls itself. */
export const LANGUAGES: Readonly<Record<Language, string>> = { en: 'English', de: 'Deutsch' };

type Choice = Loaded & Partial<Labelled> & { readonly language: Language; choose(language: Language): void };

const Context = createContext<Choice | undefined>(undefined);
const STORED = 'scrip.language';

function preferred(): Language {
  const stored = localStorage.getItem(STORED);
  if (stored === 'en' || stored === 'de') return stored;
  return navigator.language.startsWith('de') ? 'de' : 'en';
}

const load = (language: Language, isLabelled: boolean) =>
  Promise.all([LOAD[language](), isLabelled ? LOAD_LABELS[language]() : undefined]);

// The texts are loaded when the page starts, not at its first render.
void load(preferred(), !beginsOutside).catch(() => undefined);

/** The language of the page: the stored choice, or else the browser's language. */
export function Languages({ children }: { readonly children: ReactNode }) {
  const [language, setLanguage] = useState(preferred);
  const [loaded, setLoaded] = useState<Loaded & Partial<Labelled> & { language: Language }>();
  // The sign-in has no names of the service, until an answer to what was typed has some.
  const isAtWork = useAtWork();
  const isLabelled = useApp().session !== undefined || !beginsOutside || isAtWork;
  useEffect(() => {
    let isWanted = true;
    void load(language, isLabelled).then(([texts, labelled]) => {
      if (!isWanted) return;
      document.documentElement.lang = language;
      setLoaded({ language, ...texts, ...labelled });
    });
    return () => {
      isWanted = false;
    };
  }, [language, isLabelled]);
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
