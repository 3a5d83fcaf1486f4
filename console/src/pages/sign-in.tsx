import { Alert, Anchor, Center, Paper, Stack, Text, Title, useMantineColorScheme } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Fragment, useEffect, useRef, useState } from 'react';
import { ApiProblem, send } from '../api.ts';
import { LANGUAGES, useLanguage } from '../i18n/index.tsx';
import { useFilters } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { Busy, Problem } from '../ui/parts.tsx';
import { SignInForm } from '../ui/sign-in-form.tsx';
import { goToProvider, takeNext } from '../ui/single-sign-on.tsx';
import { SCHEMES } from '../ui/theme.ts';

/** What the fragment of the address says: one of a few words, or else a link that signs in once. */
type Arrival =
  | { readonly kind: 'nothing' | 'second-factor' | 'signed-in' | 'stepped-up' }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'link'; readonly link: string };

const REFUSED = 'single-sign-on=';

function arrivalOf(fragment: string): Arrival {
  if (fragment === '') return { kind: 'nothing' };
  if (fragment === 'second-factor' || fragment === 'signed-in' || fragment === 'stepped-up')
    return { kind: fragment };
  if (fragment.startsWith(REFUSED)) return { kind: 'refused', reason: fragment.slice(REFUSED.length) };
  return { kind: 'link', link: fragment };
}

/** Who the page is from (src/http/console.ts). */
const operator = document.querySelector<HTMLMetaElement>('meta[name="application-name"]')?.content;

/** Single sign-on, or a password and then a second factor; or a link that works once. */
export function Screen() {
  const { language, choose, texts: all } = useLanguage();
  const { product, signIn: texts } = all;
  const other = language === 'en' ? 'de' : 'en';
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { door } = useApp();
  const navigate = useNavigate();
  const client = useQueryClient();
  const { next } = useFilters();
  const [error, setError] = useState<unknown>();
  const [arrival] = useState(() => arrivalOf(location.hash.slice(1)));
  const isTaken = useRef(false);
  const enter = (to = next) => navigate({ to: to?.startsWith('/') ? to : '/' });

  // biome-ignore lint/correctness/useExhaustiveDependencies: the fragment is read once
  useEffect(() => {
    if (arrival.kind === 'nothing' || isTaken.current) return;
    isTaken.current = true;
    history.replaceState(null, '', location.pathname);
    if (arrival.kind === 'signed-in') void client.invalidateQueries().then(() => enter(takeNext()));
    if (arrival.kind !== 'link') return;
    send('POST', '/session', { body: { link: arrival.link } })
      .then(() => client.invalidateQueries())
      .then(() => enter(), setError);
  }, []);
  if (error === undefined && (arrival.kind === 'link' || arrival.kind === 'signed-in')) return <Busy />;
  const isUsed = error instanceof ApiProblem && error.status === 401;
  const reasons: Readonly<Record<string, string>> = texts.refused;
  return (
    <Center mih="100vh" p="md" component="main" className="outside">
      <title>{`${texts.title} · Scrip`}</title>
      <Paper className="panel" p={32} w={400} maw="100%">
        <Stack gap="lg">
          <div>
            <Text fw={700} size="lg">
              {operator ?? product}
            </Text>
            <Title order={1}>{texts.title}</Title>
            <Text className="quiet" size="sm">
              {door === 'operator' ? texts.console : texts.portal}
            </Text>
          </div>
          {next && arrival.kind === 'nothing' && <Text size="sm">{texts.toGoOn}</Text>}
          {isUsed && <Alert color="red">{texts.linkFailed}</Alert>}
          {arrival.kind === 'refused' && (
            <Alert color="red">{reasons[arrival.reason] ?? texts.refused['not-confirmed']}</Alert>
          )}
          {error !== undefined && !isUsed && <Problem error={error} />}
          {arrival.kind === 'stepped-up' ? (
            <Text size="sm">{texts.steppedUp}</Text>
          ) : (
            <SignInForm
              startsAt={arrival.kind === 'second-factor' ? 'totp' : 'password'}
              onSingleSignOn={() => goToProvider(next)}
              onDone={() => enter(arrival.kind === 'second-factor' ? takeNext() : next)}
            />
          )}
          <Text size="sm" component="div">
            <Anchor component="button" type="button" size="sm" lang={other} onClick={() => choose(other)}>
              {LANGUAGES[other]}
            </Anchor>
            {SCHEMES.map((scheme) => (
              <Fragment key={scheme}>
                {' · '}
                <Anchor
                  component="button"
                  type="button"
                  size="sm"
                  aria-pressed={colorScheme === scheme}
                  fw={colorScheme === scheme ? 700 : undefined}
                  onClick={() => setColorScheme(scheme)}
                >
                  {all.theme[scheme]}
                </Anchor>
              </Fragment>
            ))}
          </Text>
        </Stack>
      </Paper>
    </Center>
  );
}
