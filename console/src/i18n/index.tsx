import { createContext, type ReactNode, use, useCallback, useEffect, useState } from 'react';
import { beginsOutside } from '../api.ts';
import { useApp } from '../ui/app.tsx';
import { useAtWork } from '../ui/at-work.ts';
import type { Labels } from './en.labels.ts';
import type { Catalogue, Faults } from './en.ts';

type Loaded = { readonly texts: Catalogue };

/** What the pages behind the sign-in write the names of the service with. */
type Labelled = { readonly labels: Labels };

/** What is said of refusals, and of figures without entries. The service says most of it in English. */
type Refused = {
  /** The meaning of problem codes and of field rules. */
  readonly problems: Readonly<Record<string, string>>;
  readonly faults: Faults;
  readonly refusalOf?: (message: string, write: (value: string) => string) => string | undefined;
  /** Why figures have no entries. */
  readonly unopened: Readonly<Record<string, string>>;
};
const NOT_REFUSED: Refused = { problems: {}, faults: {}, unopened: {} };

/** A page loads only the texts of its language. */
const LOAD: Readonly<Record<Language, () => Promise<Loaded>>> = {
  en: async () => ({ texts: (await import('./en.ts')).en }),
  de: async () => ({ texts: (await import('./de.ts')).de }),
};
const LOAD_LABELS: Readonly<Record<Language, () => Promise<Labelled>>> = {
  en: () => import('./en.labels.ts'),
  de: () => import('./de.labels.ts'),
};
const LOAD_REFUSED: Readonly<Record<Language, () => Promise<Refused>>> = {
  en: async () => ({ ...NOT_REFUSED, faults: (await import('./en.ts')).faults }),
  de: () => import('./de.refused.ts'),
};
export type Language = 'en' | 'de';

/** Each language, as it calls itself. */
export const LANGUAGES: Readonly<Record<Language, string>> = { en: 'English', de: 'Deutsch' };

type Choice = Loaded &
  Partial<Labelled> &
  Refused & {
    readonly language: Language;
    choose(language: Language): void;
    /** Loads what is said of refusals. */
    refuse(): void;
  };

const Context = createContext<Choice | undefined>(undefined);
const STORED = 'scrip.language';

function preferred(): Language {
  const stored = localStorage.getItem(STORED);
  if (stored === 'en' || stored === 'de') return stored;
  return navigator.language.startsWith('de') ? 'de' : 'en';
}

const load = (language: Language, isLabelled: boolean, isRefused: boolean) =>
  Promise.all([
    LOAD[language](),
    isLabelled ? LOAD_LABELS[language]() : undefined,
    isRefused ? LOAD_REFUSED[language]() : NOT_REFUSED,
  ]);

// The texts are loaded when the page starts, not at its first render.
void load(preferred(), !beginsOutside, false).catch(() => undefined);

/** The language of the page: the stored choice, or else the browser's language. */
export function Languages({ children }: { readonly children: ReactNode }) {
  const [language, setLanguage] = useState(preferred);
  const [loaded, setLoaded] = useState<Loaded & Partial<Labelled> & Refused & { language: Language }>();
  // The sign-in has no names of the service, until an answer to what was typed has some.
  const isAtWork = useAtWork();
  const isLabelled = useApp().session !== undefined || !beginsOutside || isAtWork;
  // Most refusals follow from what somebody does.
  const [wasRefused, setRefused] = useState(false);
  const isRefused = isAtWork || wasRefused;
  useEffect(() => {
    let isWanted = true;
    void load(language, isLabelled, isRefused).then(([texts, labelled, refused]) => {
      if (!isWanted) return;
      document.documentElement.lang = language;
      setLoaded({ language, ...texts, ...labelled, ...refused });
    });
    return () => {
      isWanted = false;
    };
  }, [language, isLabelled, isRefused]);
  const choose = (chosen: Language) => {
    localStorage.setItem(STORED, chosen);
    setLanguage(chosen);
  };
  const refuse = useCallback(() => setRefused(true), []);
  if (!loaded) return null;
  return <Context value={{ ...loaded, choose, refuse }}>{children}</Context>;
}

export function useLanguage(): Choice {
  const choice = use(Context);
  if (!choice) throw new Error('useLanguage outside of Languages');
  return choice;
}

export function useTexts(): Catalogue {
  return useLanguage().texts;
}
