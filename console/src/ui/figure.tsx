import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { type Figure as Declared, type Opened, openedBy } from '../figures.ts';
import { useLanguage } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import type { Written } from './format-of.ts';
import { addressOf, listAt } from './places.ts';
import { useWords } from './words.ts';

type Props = {
  /** The declaration of the figure. Tests find a figure that is shown without one. */
  readonly of: Declared | undefined;
  readonly value: unknown;
  /** The fields of its row, and of what is around the row. */
  readonly around: readonly Readonly<Record<string, unknown>>[];
  readonly children: ReactNode | Written;
};

/** The page that shows what an operation answers, and its parameters. */
function pageFor({ of = '', given }: Opened) {
  const list = listAt(of);
  if (list) return { to: list.path, search: { ...list.search, ...given } };
  const [noun = ''] = of.split('.');
  const [id] = Object.values(given);
  const to = id && addressOf(`${noun} ${id}`);
  return to ? { to, search: {} } : undefined;
}

/** Returns what a figure opens into, for the person who sees it, and what is said of it. */
function useOpened({ of, around }: Pick<Props, 'of' | 'around'>) {
  const { operations } = useApp();
  const { language, unopened } = useLanguage();
  const { label } = useWords();
  const opened = of && openedBy(of, ...around);
  if (!opened) return undefined;
  const parts = opened.sumOf.map((part) => {
    const name = label(part.replace(/^-/, '').replace(/\..*$/, ''));
    return part.startsWith('-') ? `− ${name}` : name;
  });
  const says = parts.length > 0 ? `= ${parts.join(' + ')}`.replaceAll('+ −', '−') : opened.none;
  const operation = operations?.get(opened.of ?? '');
  // In the portal, everything belongs to one merchant, whose own accounts alone are open.
  const fieldOf = (name: string) => operation?.fields.find((field) => field.name === name);
  const known = Object.fromEntries(Object.entries(opened.given).filter(([name]) => fieldOf(name)));
  const isOffered = Object.entries(known).every(([name, word]) => {
    const { options = [] } = fieldOf(name) ?? {};
    return options.length === 0 || options.includes(word);
  });
  return {
    // In German, it comes as soon as somebody is at work.
    says: parts.length > 0 || language === 'en' ? says : unopened[says ?? ''],
    isSum: opened.none === undefined,
    page: operation && isOffered ? pageFor({ ...opened, given: known }) : undefined,
  };
}

/** A figure: a link to what adds up to it. Without rows, it says why. */
export function Figure({ of, value, around, children: shown }: Props) {
  const opened = useOpened({ of, around });
  const text = textOf(value);
  const children = shown as ReactNode;
  if (!opened || text === undefined) return children;
  const { says, isSum, page } = opened;
  if (!page)
    return (
      <span data-figure={text} data-none={isSum ? undefined : ''} title={says}>
        {children}
      </span>
    );
  return (
    <Link to={page.to} search={page.search as never} className="quiet-link" data-figure={text}>
      {children}
    </Link>
  );
}

/** The exact number of a value; undefined: it is none. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'object' && value !== null && 'amount' in value) return String(value.amount);
  return undefined;
}
