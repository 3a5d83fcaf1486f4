import { useRouter } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useEffect } from 'react';
import { useLanguage, useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { useAtWork } from './at-work.ts';
import { Busy, Head, Problem } from './parts.tsx';

const loadAgain = () => import('./sign-in-again.tsx');
const SignInAgain = lazy(async () => ({ default: (await loadAgain()).SignInAgain }));

/**
 * Shows a page to people who are signed in, and the sign-in to all others. If a session ends during work, the
 * sign-in covers the page, which keeps what was typed.
 */
export function Gate({ children }: { readonly children: ReactNode }) {
  const { session, isSignedOut, operations } = useApp();
  const { labels } = useLanguage();
  const router = useRouter();
  const mustSignIn = isSignedOut && !session;
  const isInside = session !== undefined && operations !== undefined;
  // A page in which somebody works must not have to load a file when the session ends.
  const isAtWork = useAtWork();
  useEffect(() => {
    if (isAtWork && isInside) void loadAgain().catch(() => undefined);
  }, [isAtWork, isInside]);
  // Once: while the sign-in loads, this is drawn again, with the address of the sign-in.
  useEffect(() => {
    if (!mustSignIn) return;
    const { href } = router.state.location;
    const search = (href === '/' ? {} : { next: href }) as never;
    void router.navigate({ to: '/sign-in', search, replace: true });
  }, [mustSignIn, router]);
  if (!session || !operations || !labels) return <Busy />;
  return (
    <>
      {children}
      {isSignedOut && (
        <Suspense>
          <SignInAgain email={session.user.email} />
        </Suspense>
      )}
    </>
  );
}

/** Whether the service has another build by now: the entry of this one is not in its page. */
async function isOtherBuild(): Promise<boolean> {
  const entry = document.querySelector('script[type=module]')?.getAttribute('src') ?? '';
  const response = await fetch(location.href).catch(() => undefined);
  return response?.ok === true && !(await response.text()).includes(entry);
}

/** Replaces a page that could not be loaded or drawn. Of another build, the whole page is loaded, once. */
export function Rejected({ error }: { readonly error: unknown }) {
  const { title } = useTexts().problem;
  useEffect(() => {
    isOtherBuild().then(
      (isOther) => isOther && location.reload(),
      () => undefined,
    );
  }, []);
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
