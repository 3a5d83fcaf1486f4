import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ApiProblem, get, type Page, type Query } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Item } from './list.tsx';
import { BusyPage, Head, Problem } from './parts.tsx';

type Options<T> = {
  readonly query?: Query;
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
    refetchInterval: ({ state }) => (state.data && refetchMs ? refetchMs(state.data) : false),
  });
  const instead: ReactNode =
    error && !data ? <Failed error={error} retry={() => void refetch()} /> : <BusyPage />;
  return { thing: data, instead };
}

type ListOptions = {
  readonly query?: Query;
  readonly refetchMs?: number;
  readonly staleMs?: number;
  readonly enabled?: boolean;
};

/** Reads the first items of a list. @returns undefined until they have been read */
export function useItems<T = Item>(path: string, options: ListOptions = {}): readonly T[] | undefined {
  const { query, refetchMs = false, staleMs = 5_000, enabled = true } = options;
  const { data } = useQuery({
    queryKey: ['items', path, query],
    queryFn: () => get<Page<T>>(path, query),
    refetchInterval: refetchMs,
    staleTime: staleMs,
    enabled,
    retry: false,
  });
  return data?.items;
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
