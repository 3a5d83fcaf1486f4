import { useTexts } from './i18n/index.tsx';
import { start } from './main.tsx';
import { routerOf } from './router.tsx';
import type { Places } from './ui/shell.tsx';

/** The merchant's portal: its pages and their addresses. */

function useGroups(): Places {
  const { nav } = useTexts();
  return [
    {
      label: '',
      places: [
        { to: '/', label: nav.overview, icon: 'overview' },
        { to: '/check', label: nav.check, icon: 'check' },
      ],
    },
    {
      label: nav.groupVouchers,
      places: [
        { to: '/transactions', label: nav.transactions, icon: 'transactions', needs: 'transaction.list' },
        { to: '/batches', label: nav.batches, icon: 'batches', needs: 'batch.list' },
        { to: '/reconcile', label: nav.reconcile, icon: 'reconcile', needs: 'transaction.list' },
      ],
    },
    {
      label: nav.groupFinance,
      places: [
        { to: '/float', label: nav.floats, icon: 'floats', needs: 'float.show' },
        { to: '/settlements', label: nav.settlements, icon: 'settlements', needs: 'settlement.list' },
      ],
    },
    {
      label: nav.groupConnect,
      places: [
        { to: '/keys', label: nav.keys, icon: 'keys', needs: 'api-key.list' },
        { to: '/webhooks', label: nav.webhooks, icon: 'webhooks', needs: 'webhook.list' },
        { to: '/docs', label: nav.docs, icon: 'docs', needs: 'api-key.list' },
        { to: '/team', label: nav.users, icon: 'users', needs: 'user.list' },
      ],
    },
  ];
}

start(
  'portal',
  routerOf('/portal', useGroups, {
    '/': () => import('./portal-pages/home.tsx'),
    '/check': () => import('./portal-pages/check.tsx'),
    '/transactions': () => import('./pages/transactions.tsx'),
    '/transactions/$id': () => import('./pages/transaction.tsx'),
    '/batches': () => import('./pages/batches.tsx'),
    '/batches/$transactionId': () => import('./pages/batch.tsx'),
    '/reconcile': () => import('./portal-pages/reconcile.tsx'),
    '/float': () => import('./portal-pages/float.tsx'),
    '/settlements': () => import('./pages/settlements.tsx'),
    '/settlements/$id': () => import('./pages/settlement.tsx'),
    '/keys': () => import('./portal-pages/keys.tsx'),
    '/webhooks': () => import('./pages/webhooks.tsx'),
    '/webhooks/$id': () => import('./pages/webhook.tsx'),
    '/docs': () => import('./portal-pages/docs.tsx'),
    '/team': () => import('./pages/users.tsx'),
    '/account': () => import('./pages/account.tsx'),
  }),
);
