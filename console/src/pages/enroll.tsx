import { Alert, Button, Center, Paper, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { QRCodeSVG } from 'qrcode.react';
import { useEffect, useState } from 'react';
import type { PeopleAnswer } from '../answers.ts';
import { send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { Busy, intoView, Problem, submits } from '../ui/parts.tsx';
import { PasswordField } from '../ui/password.tsx';
import { RecoveryCodes } from '../ui/secrets.tsx';
import { useValues } from '../ui/values.ts';

/** A password and an authenticator for a new user. The link's token comes after the `#`, so no log has it. */
export function Screen() {
  const texts = useTexts().invitation;
  const signIn = useTexts().signIn;
  const navigate = useNavigate();
  const client = useQueryClient();
  const [token] = useState(() => location.hash.slice(1));
  const { values, setValues, inputOf } = useValues({ name: '', password: '', totp: '' });
  const opening = useMutation({
    mutationFn: () => send<PeopleAnswer<'POST /enrollment'>>('POST', '/enrollment', { body: { token } }),
    onSuccess: ({ name }) => setValues((before) => ({ ...before, name })),
  });
  const { mutate: open, data: opened } = opening;
  useEffect(() => open(), [open]);
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () =>
      send<PeopleAnswer<'POST /enrollment/complete'>>('POST', '/enrollment/complete', {
        body: { token, ...values },
      }),
    onSuccess: () => client.resetQueries(),
  });
  return (
    <Center mih="100vh" p="md" component="main" className="outside">
      <title>{`${texts.title} · Scrip`}</title>
      <Paper className="panel" p={32} w={440} maw="100%">
        <Stack>
          <Title order={1}>{texts.title}</Title>
          {data ? (
            <>
              <Title order={2}>{texts.codes}</Title>
              <Text size="sm">{texts.codesHint}</Text>
              <RecoveryCodes codes={data.recoveryCodes} />
              <Button size="sm" onClick={() => navigate({ to: '/' })}>
                {texts.open}
              </Button>
            </>
          ) : (
            <>
              {!opened && !opening.error && <Busy />}
              {opened && (
                <form onSubmit={submits(mutate)}>
                  <Stack>
                    <Text size="sm">
                      {texts.lead} <b>{opened.email}</b>
                    </Text>
                    <TextInput label={texts.name} required autoComplete="name" {...inputOf('name')} />
                    <PasswordField
                      label={signIn.password}
                      description={texts.passwordHint}
                      required
                      minLength={12}
                      autoComplete="new-password"
                      {...inputOf('password')}
                    />
                    <Text size="sm">{texts.scan}</Text>
                    <Center>
                      <QRCodeSVG value={opened.totp.uri} size={160} marginSize={2} title="TOTP" />
                    </Center>
                    <pre className="code">{opened.totp.secret}</pre>
                    <TextInput
                      label={signIn.factor}
                      required
                      inputMode="numeric"
                      autoComplete="one-time-code"
                      {...inputOf('totp')}
                    />
                    {error && (
                      <div ref={intoView}>
                        <Problem error={error} />
                      </div>
                    )}
                    <Button type="submit" size="sm" loading={isPending}>
                      {texts.finish}
                    </Button>
                  </Stack>
                </form>
              )}
              {opening.error && (
                <>
                  <Alert color="red">{signIn.linkFailed}</Alert>
                  <Button variant="default" size="sm" onClick={() => navigate({ to: '/sign-in' })}>
                    {signIn.title}
                  </Button>
                </>
              )}
            </>
          )}
        </Stack>
      </Paper>
    </Center>
  );
}
