import { Anchor, Button, Center, Paper, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Filters } from '../ui/list.tsx';
import { Busy, Problem } from '../ui/parts.tsx';

type Answer = { readonly next?: 'second-factor' };

/** Password, then a second factor; or a link that works once. */
export function Screen() {
  const texts = useTexts().signIn;
  const navigate = useNavigate();
  const client = useQueryClient();
  const { next } = useSearch({ strict: false }) as Filters;
  const [step, setStep] = useState<'password' | 'totp' | 'recovery'>('password');
  const [values, setValues] = useState({ email: '', password: '', totp: '', recoveryCode: '' });
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const link = useRef<string | null>(location.hash.slice(1));

  const enter = async (body: object) => {
    setBusy(true);
    setError(undefined);
    try {
      const answer = await send<Answer>('POST', '/session', { body });
      if (answer.next === 'second-factor') return setStep('totp');
      await client.resetQueries();
      await navigate({ to: next?.startsWith('/') ? next : '/' });
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the link is used once
  useEffect(() => {
    if (!link.current) return;
    const used = link.current;
    link.current = null;
    history.replaceState(null, '', location.pathname);
    void enter({ link: used });
  }, []);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    const { email, password, totp, recoveryCode } = values;
    void enter(step === 'password' ? { email, password } : step === 'totp' ? { totp } : { recoveryCode });
  };
  const set = (name: keyof typeof values) => (event: { currentTarget: { value: string } }) =>
    setValues({ ...values, [name]: event.currentTarget.value });
  if (isBusy && step === 'password' && values.email === '') return <Busy />;
  return (
    <Center mih="100vh" p="md" component="main">
      <Paper className="panel" p="xl" w={380} maw="100%">
        <form onSubmit={submit}>
          <Stack>
            <div>
              <Text fw={700}>Scrip</Text>
              <Title order={1}>{texts.title}</Title>
            </div>
            {step === 'password' && (
              <>
                <TextInput
                  label={texts.email}
                  type="email"
                  required
                  autoComplete="username"
                  value={values.email}
                  onChange={set('email')}
                />
                <PasswordInput
                  label={texts.password}
                  required
                  autoComplete="current-password"
                  value={values.password}
                  onChange={set('password')}
                />
              </>
            )}
            {step === 'totp' && (
              <TextInput
                label={texts.factor}
                required
                inputMode="numeric"
                autoComplete="one-time-code"
                autoFocus
                value={values.totp}
                onChange={set('totp')}
              />
            )}
            {step === 'recovery' && (
              <TextInput
                label={texts.recoveryCode}
                required
                autoFocus
                value={values.recoveryCode}
                onChange={set('recoveryCode')}
              />
            )}
            {error !== undefined && <Problem error={error} />}
            <Button type="submit" loading={isBusy}>
              {texts.next}
            </Button>
            {step !== 'password' && (
              <Anchor
                component="button"
                type="button"
                size="sm"
                onClick={() => setStep(step === 'totp' ? 'recovery' : 'totp')}
              >
                {step === 'totp' ? texts.recovery : texts.useTotp}
              </Anchor>
            )}
          </Stack>
        </form>
      </Paper>
    </Center>
  );
}
