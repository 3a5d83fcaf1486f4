import { Alert, Center, Paper, Stack, Text, Title } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { ApiProblem, send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import type { Filters } from '../ui/filters.tsx';
import { Busy, Problem } from '../ui/parts.tsx';
import { SignInForm } from '../ui/sign-in-form.tsx';

/** Password, then a second factor; or a link that works once. */
export function Screen() {
  const texts = useTexts();
  const { door } = useApp();
  const navigate = useNavigate();
  const client = useQueryClient();
  const { next } = useSearch({ strict: false }) as Filters;
  const [error, setError] = useState<unknown>();
  const link = useRef<string | null>(location.hash.slice(1));
  const [isLinked] = useState(() => location.hash.length > 1);
  const enter = () => navigate({ to: next?.startsWith('/') ? next : '/' });

  // biome-ignore lint/correctness/useExhaustiveDependencies: the link is used once
  useEffect(() => {
    if (!link.current) return;
    const used = link.current;
    link.current = null;
    history.replaceState(null, '', location.pathname);
    send('POST', '/session', { body: { link: used } })
      .then(() => client.invalidateQueries())
      .then(enter, setError);
  }, []);
  if (isLinked && error === undefined) return <Busy />;
  const isUsed = error instanceof ApiProblem && error.status === 401;
  return (
    <Center mih="100vh" p="md" component="main" className="outside">
      <title>{`${texts.signIn.title} · Scrip`}</title>
      <Paper className="panel" p={32} w={400} maw="100%">
        <Stack gap="lg">
          <div>
            <Text fw={700} size="lg">
              {texts.product}
            </Text>
            <Title order={1}>{texts.signIn.title}</Title>
            <Text className="quiet" size="sm">
              {door === 'operator' ? texts.signIn.console : texts.signIn.portal}
            </Text>
          </div>
          {isUsed && <Alert color="red">{texts.signIn.linkFailed}</Alert>}
          {error !== undefined && !isUsed && <Problem error={error} />}
          <SignInForm onDone={enter} />
        </Stack>
      </Paper>
    </Center>
  );
}
