import { useQuery } from '@tanstack/react-query';
import type { Listed } from '../answers.ts';
import { get, type Page } from '../api.ts';
import { useApp } from './app.tsx';

type Merchant = Listed<'merchant.list'>;

/** The first merchants by name, for choices, and to show a name instead of an id. */
export function useMerchants() {
  const { door, offers } = useApp();
  const { data } = useQuery({
    queryKey: ['merchants', 'names'],
    queryFn: () => get<Page<Merchant>>('/merchants', { limit: 200 }),
    enabled: door === 'operator' && offers('merchant.list'),
    staleTime: 60_000,
    retry: false,
  });
  const merchants = data?.items ?? [];
  const nameOf = (id: string) => merchants.find((each) => each.id === id)?.name;
  return { merchants, nameOf };
}
