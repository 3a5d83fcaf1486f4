import {
  type AnyRoute,
  type AsyncRouteComponent,
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
} from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import { ApiProblem, beginsOutside } from './api.ts';
import { useTexts } from './i18n/index.tsx';
import { Screen as SignIn } from './pages/sign-in.tsx';
import type { Filters } from './ui/address.ts';
import { Gate, Rejected } from './ui/gate.tsx';
import type { SideMenu } from './ui/menu.ts';
import { Busy, Head } from './ui/parts.tsx';
import { Permitted } from './ui/permitted.tsx';

type Frame = typeof import('./ui/shell.tsx').Shell;

// The sign-in does not need the frame; every other page does, and loads it at once.
let known: Frame | undefined;
const loadShell = async () => {
  known ??= (await import('./ui/shell.tsx')).Shell;
  return known;
};
if (!beginsOutside) void loadShell().catch(() => undefined);

/**
 * The frame, once it is loaded. A lazy component would first show its fallback, and React shows nothing else
 * for the next 300 ms.
 */
function useShell(): Frame | undefined {
  const [shell, setShell] = useState<{ of?: Frame; error?: unknown }>({ of: known });
  useEffect(() => {
    loadShell().then(
      (of) => setShell({ of }),
      (error: unknown) => setShell({ error }),
    );
  }, []);
  if (shell.error !== undefined) throw shell.error;
  return shell.of;
}

/** A module shows `Screen`, and `Thing` at an address with a parameter, such as `/products/$code`. */
type Screen = 'Screen' | 'Thing';
type Load = () => Promise<{ readonly [Name in Screen]?: () => ReactNode }>;
export type Pages = Readonly<Record<string, Load>>;

/** Filters are parameters of the address, and always text. By default they would be written as JSON. */
const parseSearch = (text: string): Filters => Object.fromEntries(new URLSearchParams(text));
const stringifySearch = (search: Record<string, unknown>): string => {
  const given = Object.entries(search).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
};

/**
 * While the service is down, so are the files of a page. By default, the router would reload the whole page.
 */
function unreachable(): never {
  throw new ApiProblem(0, {});
}

/**
 * The router of the console or the portal.
 * @param pages by address: those behind the sign-in
 */
export function routerOf(basepath: string, menu: SideMenu, pages: Pages) {
  function Inside({ children = <Outlet /> }: { children?: ReactNode }) {
    const Shell = useShell();
    return <Gate>{Shell ? <Shell menu={menu}>{children}</Shell> : <Busy />}</Gate>;
  }
  function NotFound() {
    const { nav, problem } = useTexts();
    return (
      <Inside>
        <Head title={problem.notFound} back={{ to: '/', label: nav.overview }} />
      </Inside>
    );
  }
  const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound });
  const inside = createRoute({
    getParentRoute: () => root,
    id: 'inside',
    component: () => <Inside />,
    errorComponent: Rejected,
  });
  const page = (parent: AnyRoute, path: string, load: Load) => {
    const shown = path.includes('$') ? 'Thing' : 'Screen';
    const Page = lazyRouteComponent(() => load().catch(unreachable), shown) as AsyncRouteComponent<object>;
    const permitted = () => (
      <Permitted menu={menu} path={path}>
        <Page />
      </Permitted>
    );
    return createRoute({
      getParentRoute: () => parent,
      path,
      validateSearch: (search: Record<string, unknown>) => search as Filters,
      component: Object.assign(permitted, { preload: Page.preload }),
      errorComponent: Rejected,
    });
  };
  const routes = Object.entries(pages).map(([path, load]) => page(inside, path, load));
  const router = createRouter({
    basepath,
    parseSearch,
    stringifySearch,
    defaultPreload: 'intent',
    // A page is shown once it is there, however long its load was shown.
    defaultPendingMinMs: 0,
    defaultPendingComponent: Busy,
    routeTree: root.addChildren([
      // Every page needs its form, for the moment when the session ends.
      page(root, '/sign-in', async () => ({ Screen: SignIn })),
      page(root, '/enroll', () => import('./pages/enroll.tsx')),
      inside.addChildren(routes),
    ]),
  });
  // The page that is opened is loaded together with the texts of its language, not after them.
  void router.preloadRoute({ to: router.latestLocation.pathname });
  return router;
}
