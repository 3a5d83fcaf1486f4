import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { type Figure as Declared, type Opened, openedBy } from '../figures.ts';
import { useApp } from './app.tsx';
import { addressOf } from './places.ts';
import { useWords } from './words.ts';

type Props = {
  /** The declaration of the figure; without it, the value is none. */
  readonly of: Declared | undefined;
  readonly value: unknown;
  /** The fields of its row, and of what is around the row. */
  readonly around: readonly Readonly<Record<string, unknown>>[];
  readonly children: ReactNode;
};

/** The address of the page that shows what an operation answers. */
function pageFor({ of = '', given }: Opened): string | undefined {
  if (of === 'books.entries') return '/books/entries';
  const [noun = ''] = of.split('.');
  const [id] = Object.values(given);
  return id && addressOf(`${noun} ${id}`);
}

/** A figure: a link to what adds up to it. */
export function Figure({ of, value, around, children }: Props) {
  const { operations } = useApp();
  const { label } = useWords();
  const opened = of && openedBy(of, ...around);
  const text = textOf(value);
  if (!opened || text === undefined) return children;
  const parts = opened.sumOf.map((part) =>
    part.startsWith('-') ? `− ${label(part.slice(1))}` : label(part),
  );
  const operation = operations?.get(opened.of ?? '');
  // In the portal, everything belongs to one merchant, whose own accounts alone are open.
  const fieldOf = (name: string) => operation?.fields.find((field) => field.name === name);
  const known = Object.fromEntries(Object.entries(opened.given).filter(([name]) => fieldOf(name)));
  const isOffered = Object.entries(known).every(([name, word]) => {
    const { options = [] } = fieldOf(name) ?? {};
    return options.length === 0 || options.includes(word);
  });
  const to = operation && isOffered ? pageFor({ ...opened, given: known }) : undefined;
  if (to === undefined)
    return (
      <span
        data-figure={text}
        title={parts.length > 0 ? `= ${parts.join(' + ')}`.replaceAll('+ −', '−') : undefined}
      >
        {children}
      </span>
    );
  return (
    <Link
      to={to}
      search={(opened.of === 'books.entries' ? known : {}) as never}
      className="quiet-link"
      data-figure={text}
    >
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
