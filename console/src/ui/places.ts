import type { Item } from './item.ts';

/** The things that have a page: its address, and the field that names one of them in it. */
const PAGES: Readonly<Record<string, readonly [path: string, key: string]>> = {
  approval: ['/approvals', 'id'],
  batch: ['/batches', 'transactionId'],
  job: ['/jobs', 'id'],
  merchant: ['/merchants', 'id'],
  product: ['/products', 'code'],
  settlement: ['/settlements', 'id'],
  transaction: ['/transactions', 'transactionId'],
  voucher: ['/vouchers', 'serialNumber'],
  webhook: ['/webhooks', 'id'],
};

/** The address of a thing's page, such as that of `product DEFAULT`, if it has one. */
export function addressOf(subject: string): string | undefined {
  const [noun = '', id = ''] = subject.split(' ');
  const [path] = PAGES[noun] ?? [];
  return path && `${path}/${encodeURIComponent(id)}`;
}

/** The lists that figures open into: the pages that show them, and the tab there. */
const LISTS: Readonly<Record<string, { readonly path: string; readonly search?: { readonly tab: string } }>> =
  {
    'bank.entries': { path: '/bank' },
    'books.entries': { path: '/books/entries' },
    'decline.list': { path: '/transactions', search: { tab: 'declined' } },
  };

export const listAt = (list: string) => LISTS[list];

/** The lists whose items are things of another name. */
const NOUNS: Readonly<Record<string, string>> = { 'books.entries': 'transaction' };

/** Returns the address that a row of a list links to, such as one of `product.list`. */
export function pageOf(list: string): ((item: Item) => string) | undefined {
  const [noun = '', verb] = list.split('.');
  const [path, key = ''] = PAGES[NOUNS[list] ?? (verb === 'list' ? noun : '')] ?? [];
  if (path === undefined) return undefined;
  return (item) => `${path}/${encodeURIComponent(String(item[key]))}`;
}
