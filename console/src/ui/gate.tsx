import { Navigate, useRouterState } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useApp } from './app.tsx';
import { Busy, Problem } from './parts.tsx';

/** Shows a page to people who are signed in, and the sign-in to all others. */
export function Gate({ children }: { readonly children: ReactNode }) {
  const { session, isSignedOut } = useApp();
  const href = useRouterState({ select: ({ location }) => location.href });
  if (isSignedOut) return <Navigate to="/sign-in" search={(href === '/' ? {} : { next: href }) as never} />;
  return session ? children : <Busy />;
}

export function Rejected({ error }: { readonly error: unknown }) {
  return <Problem error={error} />;
}
