import { useQuery } from '@tanstack/react-query';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import type { Places } from './menu.ts';
import { useMerchants, useProducts, useUsers } from './names.ts';
import { useWords } from './words.ts';

/** What the search offers: the address that it leads to, or the operation that it begins. */
export type Find = { readonly to: string; readonly label: string };
type Searched = Find & { readonly also?: string | undefined };

const SHOWN_MAX = 5;

/** Operations that have a page of their own, or only read. */
const ELSEWHERE = /^(approval\.|bank\.import$|voucher\.bulk|.*\.(find|download)$)/;

/** Pages, operations that this person may perform, and things, whose names have all words of the text. */
export function useFinds(text: string, groups: Places) {
  const { reports } = useTexts();
  const { operations, offers } = useApp();
  const { title } = useWords();
  const { merchants } = useMerchants();
  const products = useProducts();
  const { users } = useUsers();
  // What operations are for, beside their names, is loaded with the first search.
  const { data: help } = useQuery({
    queryKey: ['help'],
    queryFn: async () => (await import('../../generated/help.ts')).help,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  // An id says nothing to a person: what needs one begins on the page of its thing.
  const begins = [...(operations?.values() ?? [])].filter(
    ({ name, method, path }) =>
      method !== 'GET' && !path.includes('{id}') && !ELSEWHERE.test(name) && offers(name),
  );
  const all: { readonly [kind in 'pages' | 'operations' | 'things']: readonly Searched[] } = {
    pages: [
      ...groups.flatMap(({ places }) => places),
      ...(offers('voucher.bulk') ? [{ to: '/vouchers/bulk', label: title('voucher.bulk') }] : []),
      ...(offers('books.report')
        ? Object.entries(reports).map(([name, report]) => ({
            to: `/books/reports/${name}`,
            label: report.title,
          }))
        : []),
    ],
    operations: begins.map(({ name }) => ({ to: name, label: title(name), also: help?.[name] })),
    things: [
      ...merchants.map(({ id, name }) => ({ to: `/merchants/${id}`, label: name, also: id })),
      ...products.map(({ code, name }) => ({ to: `/products/${code}`, label: name, also: code })),
      ...users.map(({ email, name }) => ({ to: '/users', label: email, also: name })),
    ],
  };
  const isMatch = ({ label, also = '' }: Searched) =>
    words.every((word) => `${label} ${also}`.toLowerCase().includes(word));
  return (['pages', 'things', 'operations'] as const)
    .map((kind) => ({ kind, found: all[kind].filter(isMatch).slice(0, SHOWN_MAX) }))
    .filter(({ found }) => found.length > 0);
}
