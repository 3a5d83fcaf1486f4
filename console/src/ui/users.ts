import { useQuery } from '@tanstack/react-query';
import type { Listed } from '../answers.ts';
import { get, type Page } from '../api.ts';
import { useApp } from './app.tsx';

type User = Listed<'user.list'>;

/** The first users, to show an email address instead of an id. */
export function useUsers() {
  const { offers } = useApp();
  const { data } = useQuery({
    queryKey: ['users', 'addresses'],
    queryFn: () => get<Page<User>>('/users', { limit: 200 }),
    enabled: offers('user.list'),
    staleTime: 60_000,
    retry: false,
  });
  return { emailOf: (id: string) => data?.items.find((each) => each.id === id)?.email };
}
