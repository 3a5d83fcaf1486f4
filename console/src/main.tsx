import './ui/styles.ts';
import { MantineProvider } from '@mantine/core';
import { onlineManager, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { type AnyRouter, RouterProvider } from '@tanstack/react-router';
import { createRoot } from 'react-dom/client';
import { ApiProblem, chooseDoor, type Door } from './api.ts';
import { Languages } from './i18n/index.tsx';
import { AppProvider, THERE } from './ui/app.tsx';
import { keepFocus } from './ui/keep-focus.ts';
import { theme } from './ui/theme.ts';

/**
 * The nonce of this page's security policy (src/http/console.ts). Styles that are added at runtime need it.
 */
const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';

// The package that stops the page from scrolling under a dialog adds a style, and reads the nonce by this
// name.
Object.assign(globalThis, { __webpack_nonce__: nonce });

const client: QueryClient = new QueryClient({
  defaultOptions: {
    // A change that failed or is done leaves nothing in memory, such as a password.
    mutations: { networkMode: 'always', gcTime: 0 },
    queries: {
      staleTime: 5_000,
      // Without a network, a request fails with a message instead of waiting silently.
      networkMode: 'always',
      // A retry does not change a refusal, but a service that is restarting will answer soon.
      retry: (count, error) =>
        count < 3 && error instanceof ApiProblem && (error.status === 0 || error.status >= 500),
    },
  },
});

const doubt = () => void client.invalidateQueries({ queryKey: THERE });
onlineManager.subscribe(doubt);

/** Starts a page: the console or the portal. */
export function start(door: Door, router: AnyRouter): void {
  chooseDoor(door, () => void client.invalidateQueries({ queryKey: ['session'] }), doubt);
  const root = document.getElementById('root');
  if (!root) throw new Error('the page has no root');
  keepFocus();
  createRoot(root).render(
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      <QueryClientProvider client={client}>
        <AppProvider door={door}>
          <Languages>
            <RouterProvider router={router} />
          </Languages>
        </AppProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
}
