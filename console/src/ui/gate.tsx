import { Modal } from '@mantine/core';
import { Navigate, useRouterState } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useEffect } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { Busy, Head, Problem } from './parts.tsx';

const loadForm = () => import('./sign-in-form.tsx');
const SignInForm = lazy(async () => ({ default: (await loadForm()).SignInForm }));

/**
 * Shows a page to people who are signed in, and the sign-in to all others. Where a session ends in the
 * middle of the work, the sign-in stands before the page: what was typed is still there behind it.
 */
export function Gate({ children }: { readonly children: ReactNode }) {
  const texts = useTexts().signIn;
  const { session, isSignedOut, operations } = useApp();
  const href = useRouterState({ select: ({ location }) => location.href });
  const isInside = session !== undefined && operations !== undefined;
  // A form that is open when the session ends must not wait for a file.
  useEffect(() => {
    if (isInside) loadForm().catch(() => undefined);
  }, [isInside]);
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

/** In the place of a page that could not be loaded or drawn. */
export function Rejected({ error }: { readonly error: unknown }) {
  const { title } = useTexts().problem;
  // A service that answers may have another build by now: its page is loaded as a whole.
  const retry = async () => {
    const isThere = await fetch(location.href).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isThere) location.reload();
  };
  return (
    <>
      <Head title={title} />
      <Problem error={error} retry={() => void retry()} />
    </>
  );
}
