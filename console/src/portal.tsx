import { start } from './main.tsx';
import { routerOf } from './router.tsx';
import type { SideMenu } from './ui/menu.ts';

/** The merchant's portal: its pages and their addresses. */

const MENU: SideMenu = [
  {
    places: [
      { name: 'overview', to: '/', needs: 'transaction.list' },
      { name: 'till', needs: 'till.redeem' },
      { name: 'check' },
    ],
  },
  {
    group: 'vouchers',
    places: [
      { name: 'transactions', needs: 'transaction.list' },
      { name: 'batches', needs: 'batch.list' },
      { name: 'reconcile', needs: 'transaction.list' },
    ],
  },
  {
    group: 'groupFinance',
    places: [
      { name: 'floats', to: '/float', needs: 'float.show' },
      { name: 'settlements', needs: 'settlement.list' },
    ],
  },
  {
    group: 'groupConnect',
    places: [
      { name: 'keys', needs: 'api-key.list' },
      { name: 'webhooks', needs: 'webhook.list' },
      { name: 'docs', needs: 'api-key.list' },
      { name: 'users', to: '/team', needs: 'user.list' },
      { name: 'approvals', needs: 'approval.list' },
    ],
  },
];

start(
  'portal',
  routerOf('/portal', MENU, {
    '/': () => import('./portal-pages/home.tsx'),
    '/till': () => import('./portal-pages/till.tsx'),
    '/check': () => import('./portal-pages/check.tsx'),
    '/transactions': () => import('./pages/transactions.tsx'),
    '/transactions/$id': () => import('./pages/transactions.tsx'),
    '/batches': () => import('./pages/batches.tsx'),
    '/batches/$transactionId': () => import('./pages/batches.tsx'),
    '/approvals': () => import('./pages/approvals.tsx'),
    '/approvals/$id': () => import('./pages/approvals.tsx'),
    '/reconcile': () => import('./portal-pages/reconcile.tsx'),
    '/float': () => import('./portal-pages/float.tsx'),
    '/books/entries': () => import('./pages/entries.tsx'),
    '/settlements': () => import('./pages/settlements.tsx'),
    '/settlements/$id': () => import('./pages/settlements.tsx'),
    '/keys': () => import('./pages/keys.tsx'),
    '/webhooks': () => import('./pages/webhooks.tsx'),
    '/webhooks/$id': () => import('./pages/webhooks.tsx'),
    '/docs': () => import('./portal-pages/docs.tsx'),
    '/team': () => import('./pages/users.tsx'),
    '/account': () => import('./pages/account.tsx'),
  }),
);
