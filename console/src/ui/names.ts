import type { Listed } from '../answers.ts';
import type { Field } from '../described.ts';
import { useApp } from './app.tsx';
import { useItems } from './items.ts';

/** Choices for fields, by their names. */
export type Choices = Readonly<Record<string, readonly { readonly value: string; readonly label: string }[]>>;

/** Reads the first items of a list, for choices, and to show names instead of ids. */
function useFirst<Item>(path: string, enabled: boolean): readonly Item[] {
  return useItems<Item>(path, { query: { limit: 200 }, enabled, staleMs: 60_000 }) ?? [];
}

export function useMerchants(enabled = true) {
  const { door, offers } = useApp();
  // In the portal, everything belongs to one merchant.
  const isOffered = door === 'operator' && offers('merchant.list');
  const merchants = useFirst<Listed<'merchant.list'>>('/merchants', enabled && isOffered);
  return { merchants, nameOf: (id: string) => merchants.find((each) => each.id === id)?.name };
}

export function useProducts(enabled = true) {
  const isOffered = useApp().offers('product.list');
  return useFirst<Listed<'product.list'>>('/products', enabled && isOffered);
}

/** Returns the name of a product by its code. */
export function useProductNames() {
  const products = useProducts();
  return (code: string) => products.find((each) => each.code === code)?.name;
}

/** The choices for a field that names something. */
export function useChoices({ format }: Field) {
  const { merchants } = useMerchants(format === 'merchant');
  const products = useProducts(format === 'product');
  if (format === 'merchant')
    return merchants.map(({ id, name }) => ({ value: id, label: `${name} (${id})` }));
  if (format === 'product')
    return products.map(({ code, name }) => ({ value: code, label: `${name} (${code})` }));
  return undefined;
}

export function useUsers() {
  const users = useFirst<Listed<'user.list'>>('/users', useApp().offers('user.list'));
  return { users, emailOf: (id: string) => users.find((each) => each.id === id)?.email };
}
