import type { Listed } from '../answers.ts';
import { useApp } from './app.tsx';
import { useItems } from './items.ts';

/** Reads the first items of a list, for choices, and to show names instead of ids. */
function useFirst<Item>(path: string, enabled: boolean): readonly Item[] {
  return useItems<Item>(path, { query: { limit: 200 }, enabled, staleMs: 60_000 }) ?? [];
}

/** In the portal, everything belongs to one merchant. */
function useOffered(list: string): boolean {
  const { door, offers } = useApp();
  return door === 'operator' && offers(list);
}

export function useMerchants() {
  const merchants = useFirst<Listed<'merchant.list'>>('/merchants', useOffered('merchant.list'));
  return { merchants, nameOf: (id: string) => merchants.find((each) => each.id === id)?.name };
}

export const useProducts = () => useFirst<Listed<'product.list'>>('/products', useOffered('product.list'));

export function useUsers() {
  const users = useFirst<Listed<'user.list'>>('/users', useApp().offers('user.list'));
  return { users, emailOf: (id: string) => users.find((each) => each.id === id)?.email };
}
