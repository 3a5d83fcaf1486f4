import { start } from './main.tsx';
import { routerOf } from './router.tsx';
import type { SideMenu } from './ui/menu.ts';

/** The operator's console: its pages and their addresses. */

const MENU: SideMenu = [
  { places: [{ name: 'overview', to: '/' }] },
  {
    group: 'vouchers',
    places: [
      { name: 'vouchers', needs: 'voucher.list' },
      { name: 'transactions', needs: 'transaction.list' },
      { name: 'batches', needs: 'batch.list' },
      { name: 'products', needs: 'product.list' },
    ],
  },
  {
    group: 'merchants',
    places: [
      { name: 'merchants', needs: 'merchant.list' },
      { name: 'webhooks', needs: 'webhook.list' },
    ],
  },
  {
    group: 'groupFinance',
    places: [
      { name: 'books', needs: 'books.days' },
      { name: 'settlements', needs: 'settlement.list' },
      { name: 'bank', needs: 'bank.entries' },
    ],
  },
  {
    group: 'groupControl',
    places: [
      { name: 'approvals', needs: 'approval.list' },
      { name: 'audit', needs: 'audit.list' },
      { name: 'users', needs: 'user.list' },
      { name: 'tokens', needs: 'token.list' },
      { name: 'system', needs: 'job.list' },
      { name: 'settings', needs: 'settings.show' },
    ],
  },
];

start(
  'operator',
  routerOf('/console', MENU, {
    '/': () => import('./pages/overview.tsx'),
    '/search': () => import('./pages/search.tsx'),
    '/vouchers': () => import('./pages/vouchers.tsx'),
    '/vouchers/bulk': () => import('./pages/bulk.tsx'),
    '/vouchers/$serialNumber': () => import('./pages/vouchers.tsx'),
    '/transactions': () => import('./pages/transactions.tsx'),
    '/transactions/$id': () => import('./pages/transactions.tsx'),
    '/batches': () => import('./pages/batches.tsx'),
    '/batches/$transactionId': () => import('./pages/batches.tsx'),
    '/merchants': () => import('./pages/merchants.tsx'),
    '/merchants/$id': () => import('./pages/merchants.tsx'),
    '/products': () => import('./pages/products.tsx'),
    '/products/$code': () => import('./pages/products.tsx'),
    '/books': () => import('./pages/books.tsx'),
    '/books/entries': () => import('./pages/entries.tsx'),
    '/books/reports/$report': () => import('./pages/report.tsx'),
    '/settlements': () => import('./pages/settlements.tsx'),
    '/settlements/$id': () => import('./pages/settlements.tsx'),
    '/bank': () => import('./pages/bank.tsx'),
    '/approvals': () => import('./pages/approvals.tsx'),
    '/approvals/$id': () => import('./pages/approvals.tsx'),
    '/webhooks': () => import('./pages/webhooks.tsx'),
    '/webhooks/$id': () => import('./pages/webhooks.tsx'),
    '/audit': () => import('./pages/audit.tsx'),
    '/users': () => import('./pages/users.tsx'),
    '/tokens': () => import('./pages/tokens.tsx'),
    '/system': () => import('./pages/system.tsx'),
    '/jobs/$id': () => import('./pages/job.tsx'),
    '/settings': () => import('./pages/settings.tsx'),
    '/account': () => import('./pages/account.tsx'),
  }),
);
