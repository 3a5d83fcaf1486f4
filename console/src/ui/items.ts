import { useQuery } from '@tanstack/react-query';
import { get, type Page, type Query } from '../api.ts';
import type { Item } from './item.ts';

/** How often what is open is read again. */
export const AGAIN_MS = 30_000;

type Options = {
  readonly query?: Query;
  readonly refetchMs?: number;
  readonly staleMs?: number;
  readonly enabled?: boolean;
};

/** Reads the first items of a list. @returns undefined until they have been read */
export function useItems<T = Item>(path: string, options: Options = {}): readonly T[] | undefined {
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
