import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
} from '@tanstack/react-router';
import { useTexts } from './i18n/index.tsx';
import { start } from './main.tsx';
import { Gate, Rejected } from './ui/gate.tsx';
import type { Filters } from './ui/list.tsx';
import { Empty } from './ui/parts.tsx';
import { type Place, Shell } from './ui/shell.tsx';

/** The operator's console: its pages and their addresses. */

function usePlaces(): Place[] {
  const { nav } = useTexts();
  return [
    { to: '/', label: nav.overview },
    { to: '/vouchers', label: nav.vouchers, needs: 'voucher.list' },
    { to: '/transactions', label: nav.transactions, needs: 'transaction.list' },
    { to: '/batches', label: nav.batches, needs: 'batch.list' },
    { to: '/merchants', label: nav.merchants, needs: 'merchant.list' },
    { to: '/products', label: nav.products, needs: 'product.list' },
    { to: '/books', label: nav.books, needs: 'books.days' },
    { to: '/settlements', label: nav.settlements, needs: 'settlement.list' },
    { to: '/approvals', label: nav.approvals, needs: 'approval.list' },
    { to: '/webhooks', label: nav.webhooks, needs: 'webhook.list' },
    { to: '/audit', label: nav.audit, needs: 'audit.list' },
    { to: '/users', label: nav.users, needs: 'user.list' },
    { to: '/tokens', label: nav.tokens, needs: 'token.list' },
    { to: '/system', label: nav.system, needs: 'ledger.reconcile' },
  ];
}

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound });

function NotFound() {
  return <Empty text={useTexts().problem.notFound} />;
}

const inside = createRoute({
  getParentRoute: () => root,
  id: 'inside',
  component: function Inside() {
    const places = usePlaces();
    return (
      <Gate>
        <Shell places={places}>
          <Outlet />
        </Shell>
      </Gate>
    );
  },
  errorComponent: Rejected,
});

/** Filters are typed parameters of the address: texts, and nothing else. */
const readFilters = (search: Record<string, unknown>): Filters =>
  Object.fromEntries(
    Object.entries(search).map(([name, value]) => [name, value === undefined ? undefined : String(value)]),
  );

const page = (path: string, load: () => Promise<Record<string, unknown>>) =>
  createRoute({
    getParentRoute: () => inside,
    path,
    validateSearch: readFilters,
    component: lazyRouteComponent(load as never, 'Screen' as never),
  });
const open = (path: string, load: () => Promise<Record<string, unknown>>) =>
  createRoute({
    getParentRoute: () => root,
    path,
    validateSearch: readFilters,
    component: lazyRouteComponent(load as never, 'Screen' as never),
  });

const router = createRouter({
  basepath: '/console',
  defaultPreload: 'intent',
  routeTree: root.addChildren([
    open('/sign-in', () => import('./pages/sign-in.tsx')),
    open('/invitation', () => import('./pages/invitation.tsx')),
    inside.addChildren([
      page('/', () => import('./pages/overview.tsx')),
      page('/search', () => import('./pages/search.tsx')),
      page('/vouchers', () => import('./pages/vouchers.tsx')),
      page('/vouchers/$serialNumber', () => import('./pages/voucher.tsx')),
      page('/transactions', () => import('./pages/transactions.tsx')),
      page('/transactions/$id', () => import('./pages/transaction.tsx')),
      page('/batches', () => import('./pages/batches.tsx')),
      page('/batches/$transactionId', () => import('./pages/batch.tsx')),
      page('/merchants', () => import('./pages/merchants.tsx')),
      page('/merchants/$id', () => import('./pages/merchant.tsx')),
      page('/products', () => import('./pages/products.tsx')),
      page('/products/$code', () => import('./pages/product.tsx')),
      page('/books', () => import('./pages/books.tsx')),
      page('/books/reports/$report', () => import('./pages/report.tsx')),
      page('/settlements', () => import('./pages/settlements.tsx')),
      page('/settlements/$id', () => import('./pages/settlement.tsx')),
      page('/approvals', () => import('./pages/approvals.tsx')),
      page('/webhooks', () => import('./pages/webhooks.tsx')),
      page('/webhooks/$id', () => import('./pages/webhook.tsx')),
      page('/audit', () => import('./pages/audit.tsx')),
      page('/users', () => import('./pages/users.tsx')),
      page('/tokens', () => import('./pages/tokens.tsx')),
      page('/system', () => import('./pages/system.tsx')),
      page('/account', () => import('./pages/account.tsx')),
    ]),
  ]),
});

start('operator', router);
