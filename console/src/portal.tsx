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

/** The merchant's portal: its pages and their addresses. */

function usePlaces(): Place[] {
  const { nav } = useTexts();
  return [
    { to: '/', label: nav.overview },
    { to: '/check', label: nav.check },
    { to: '/transactions', label: nav.transactions, needs: 'transaction.list' },
    { to: '/batches', label: nav.batches, needs: 'batch.list' },
    { to: '/settlements', label: nav.settlements, needs: 'settlement.list' },
    { to: '/keys', label: nav.keys, needs: 'api-key.list' },
    { to: '/webhooks', label: nav.webhooks, needs: 'webhook.list' },
    { to: '/team', label: nav.users, needs: 'user.list' },
    { to: '/reconcile', label: nav.reconcile, needs: 'transaction.list' },
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

const readFilters = (search: Record<string, unknown>): Filters =>
  Object.fromEntries(
    Object.entries(search).map(([name, value]) => [name, value === undefined ? undefined : String(value)]),
  );

type Parent = typeof root | typeof inside;
const page = (parent: Parent, path: string, load: () => Promise<Record<string, unknown>>) =>
  createRoute({
    getParentRoute: () => parent as typeof root,
    path,
    validateSearch: readFilters,
    component: lazyRouteComponent(load as never, 'Screen' as never),
  });

const router = createRouter({
  basepath: '/portal',
  defaultPreload: 'intent',
  routeTree: root.addChildren([
    page(root, '/sign-in', () => import('./pages/sign-in.tsx')),
    page(root, '/invitation', () => import('./pages/invitation.tsx')),
    inside.addChildren([
      page(inside, '/', () => import('./portal-pages/home.tsx')),
      page(inside, '/check', () => import('./portal-pages/check.tsx')),
      page(inside, '/transactions', () => import('./pages/transactions.tsx')),
      page(inside, '/transactions/$id', () => import('./pages/transaction.tsx')),
      page(inside, '/batches', () => import('./pages/batches.tsx')),
      page(inside, '/batches/$transactionId', () => import('./pages/batch.tsx')),
      page(inside, '/settlements', () => import('./pages/settlements.tsx')),
      page(inside, '/settlements/$id', () => import('./pages/settlement.tsx')),
      page(inside, '/keys', () => import('./portal-pages/keys.tsx')),
      page(inside, '/webhooks', () => import('./pages/webhooks.tsx')),
      page(inside, '/webhooks/$id', () => import('./pages/webhook.tsx')),
      page(inside, '/team', () => import('./pages/users.tsx')),
      page(inside, '/reconcile', () => import('./portal-pages/reconcile.tsx')),
      page(inside, '/account', () => import('./pages/account.tsx')),
    ]),
  ]),
});

start('portal', router);
