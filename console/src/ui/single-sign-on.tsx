import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { PeopleAnswer } from '../answers.ts';
import { get } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { type Session, useApp } from './app.tsx';

/** Single sign-on: the browser goes to the identity provider, and comes back to the sign-in page. */

const PATH = '/operator/v1/session/oidc';
/** The page to open after the sign-in, while the browser is at the provider. */
const NEXT = 'scrip.next';

/** Whether people can sign in by an identity provider. The portal has none. */
export function useSingleSignOn(): boolean {
  const { door } = useApp();
  const { data } = useQuery({
    queryKey: ['methods'],
    queryFn: () => get<PeopleAnswer<'GET /session/methods'>>('/session/methods'),
    enabled: door === 'operator',
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  return data?.oidc ?? false;
}

/** Leaves for the provider. */
export function goToProvider(next: string | undefined): void {
  sessionStorage.setItem(NEXT, next ?? '/');
  location.assign(PATH);
}

/** Returns the page to open after the sign-in. */
export function takeNext(): string {
  const next = sessionStorage.getItem(NEXT) ?? '/';
  sessionStorage.removeItem(NEXT);
  return next;
}

const POLL_MS = 1_000;

/**
 * Goes to the provider in another window, so that this page keeps what was typed, and waits for its end.
 * @param purpose to sign in again after the session has ended, or to step it up
 */
export function ProviderWindow({
  purpose,
  onDone,
}: {
  readonly purpose: 'sign-in' | 'step-up';
  onDone(): void;
}) {
  const texts = useTexts().signIn;
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (!isOpen) return;
    const timer = setInterval(async () => {
      const session = await get<Session>('/session').catch(() => undefined);
      if (!session || (purpose === 'step-up' && !session.steppedUpUntil)) return;
      setOpen(false);
      onDone();
    }, POLL_MS);
    return () => clearInterval(timer);
  }, [isOpen, purpose, onDone]);
  const open = () => {
    window.open(purpose === 'step-up' ? `${PATH}/step-up` : PATH, '_blank', 'noopener');
    setOpen(true);
  };
  return (
    <Button variant="default" size="sm" loading={isOpen} onClick={open}>
      {texts.singleSignOn}
    </Button>
  );
}
