import { Modal } from '@mantine/core';
import { Navigate, useRouterState } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { Busy, Problem } from './parts.tsx';

const SignInForm = lazy(async () => ({ default: (await import('./sign-in-form.tsx')).SignInForm }));

/**
 * Shows a page to people who are signed in, and the sign-in to all others. Where a session ends in the
 * middle of the work, the sign-in stands before the page: what was typed is still there behind it.
 */
export function Gate({ children }: { readonly children: ReactNode }) {
  const texts = useTexts().signIn;
  const { session, isSignedOut, operations } = useApp();
  const href = useRouterState({ select: ({ location }) => location.href });
  if (isSignedOut && !session)
    return <Navigate to="/sign-in" search={(href === '/' ? {} : { next: href }) as never} />;
  if (!session || !operations) return <Busy />;
  return (
    <>
      {children}
      <Modal
        opened={isSignedOut}
        onClose={() => {}}
        withCloseButton={false}
        title={texts.again}
        zIndex={500}
        centered
      >
        <Suspense fallback={<Busy />}>
          <SignInForm email={session.user.email} onDone={() => {}} />
        </Suspense>
      </Modal>
    </>
  );
}

export function Rejected({ error }: { readonly error: unknown }) {
  return <Problem error={error} />;
}
