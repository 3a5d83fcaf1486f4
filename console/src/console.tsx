import { useTexts } from './i18n/index.tsx';
import { start } from './main.tsx';
import { routerOf } from './router.tsx';
import type { Places } from './ui/shell.tsx';

/** The operator's console: its pages and their addresses. */

function useGroups(): Places {
  const { nav } = useTexts();
  return [
    { label: '', places: [{ to: '/', label: nav.overview, icon: 'overview' }] },
    {
      label: nav.groupVouchers,
      places: [
        { to: '/vouchers', label: nav.vouchers, icon: 'vouchers', needs: 'voucher.list' },
        { to: '/transactions', label: nav.transactions, icon: 'transactions', needs: 'transaction.list' },
        { to: '/batches', label: nav.batches, icon: 'batches', needs: 'batch.list' },
        { to: '/products', label: nav.products, icon: 'products', needs: 'product.list' },
      ],
    },
    {
      label: nav.groupMerchants,
      places: [
        { to: '/merchants', label: nav.merchants, icon: 'merchants', needs: 'merchant.list' },
        { to: '/webhooks', label: nav.webhooks, icon: 'webhooks', needs: 'webhook.list' },
      ],
    },
    {
      label: nav.groupFinance,
      places: [
        { to: '/books', label: nav.books, icon: 'books', needs: 'books.days' },
        { to: '/settlements', label: nav.settlements, icon: 'settlements', needs: 'settlement.list' },
        { to: '/bank', label: nav.bank, icon: 'bank', needs: 'bank.entries' },
      ],
    },
    {
      label: nav.groupControl,
      places: [
        { to: '/approvals', label: nav.approvals, icon: 'approvals', needs: 'approval.list' },
        { to: '/audit', label: nav.audit, icon: 'audit', needs: 'audit.list' },
        { to: '/users', label: nav.users, icon: 'users', needs: 'user.list' },
        { to: '/tokens', label: nav.tokens, icon: 'tokens', needs: 'token.list' },
        { to: '/system', label: nav.system, icon: 'system', needs: 'job.list' },
        { to: '/settings', label: nav.settings, icon: 'settings', needs: 'settings.show' },
      ],
    },
  ];
}

start(
  'operator',
  routerOf('/console', useGroups, {
    '/': () => import('./pages/overview.tsx'),
    '/search': () => import('./pages/search.tsx'),
    '/vouchers': () => import('./pages/vouchers.tsx'),
    '/vouchers/bulk': () => import('./pages/bulk.tsx'),
    '/vouchers/$serialNumber': () => import('./pages/voucher.tsx'),
    '/transactions': () => import('./pages/transactions.tsx'),
    '/transactions/$id': () => import('./pages/transaction.tsx'),
    '/batches': () => import('./pages/batches.tsx'),
    '/batches/$transactionId': () => import('./pages/batch.tsx'),
    '/merchants': () => import('./pages/merchants.tsx'),
    '/merchants/$id': () => import('./pages/merchant.tsx'),
    '/products': () => import('./pages/products.tsx'),
    '/products/$code': () => import('./pages/product.tsx'),
    '/books': () => import('./pages/books.tsx'),
    '/books/reports/$report': () => import('./pages/report.tsx'),
    '/settlements': () => import('./pages/settlements.tsx'),
    '/settlements/$id': () => import('./pages/settlement.tsx'),
    '/bank': () => import('./pages/bank.tsx'),
    '/approvals': () => import('./pages/approvals.tsx'),
    '/approvals/$id': () => import('./pages/approval.tsx'),
    '/webhooks': () => import('./pages/webhooks.tsx'),
    '/webhooks/$id': () => import('./pages/webhook.tsx'),
    '/audit': () => import('./pages/audit.tsx'),
    '/users': () => import('./pages/users.tsx'),
    '/tokens': () => import('./pages/tokens.tsx'),
    '/system': () => import('./pages/system.tsx'),
    '/jobs/$id': () => import('./pages/job.tsx'),
    '/settings': () => import('./pages/settings.tsx'),
    '/account': () => import('./pages/account.tsx'),
  }),
);
