import { useQuery } from '@tanstack/react-query';
import type { Listed } from '../answers.ts';
import { get, type Page } from '../api.ts';
import { useApp } from './app.tsx';

/** Reads the first items of a list, for choices, and to show names instead of ids. */
function useFirst<Item>(list: string, path: string): readonly Item[] {
  const { door, offers } = useApp();
  const { data } = useQuery({
    queryKey: ['names', path],
    queryFn: () => get<Page<Item>>(path, { limit: 200 }),
    enabled: door === 'operator' && offers(list),
    staleTime: 60_000,
    retry: false,
  });
  return data?.items ?? [];
}

export function useMerchants() {
  const merchants = useFirst<Listed<'merchant.list'>>('merchant.list', '/merchants');
  return { merchants, nameOf: (id: string) => merchants.find((each) => each.id === id)?.name };
}

export const useProducts = () => useFirst<Listed<'product.list'>>('product.list', '/products');

/** Returns the email address of a user. */
export function useUsers(): (id: string) => string | undefined {
  const users = useFirst<Listed<'user.list'>>('user.list', '/users');
  return (id) => users.find((each) => each.id === id)?.email;
}
