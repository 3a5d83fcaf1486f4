import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ApiProblem, get, type Query } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Item } from './item.ts';
import { AGAIN_MS } from './items.ts';
import { BusyPage, Head, Problem } from './parts.tsx';

type Options<T> = {
  readonly query?: Query;
  /** How often it is read again while something happens to it; false: as every thing. */
  readonly refetchMs?: (thing: T) => number | false;
  readonly enabled?: boolean;
};

/** Reads one thing. Until it has been read, the page shows `instead`. */
export function useThing<T extends Item>(
  path: string,
  { query, refetchMs, enabled = true }: Options<T> = {},
) {
  const { data, error, refetch } = useQuery({
    queryKey: ['thing', path, query],
    queryFn: () => get<T>(path, query),
    enabled,
    refetchInterval: ({ state }) => (state.data && refetchMs?.(state.data)) || AGAIN_MS,
  });
  const instead: ReactNode =
    error && !data ? <Failed error={error} retry={() => void refetch()} /> : <BusyPage />;
  return { thing: data, instead };
}

function Failed({ error, retry }: { error: unknown; retry(): void }) {
  const texts = useTexts().problem;
  const isAbsent = error instanceof ApiProblem && error.status === 404;
  return (
    <>
      <Head title={isAbsent ? texts.absent : texts.title} />
      <Problem error={error} retry={isAbsent ? undefined : retry} />
    </>
  );
}
