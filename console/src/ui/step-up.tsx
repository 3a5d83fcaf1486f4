import { Alert, Anchor, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { Problem, submits } from './parts.tsx';
import { canUsePasskeys, stepUpByPasskey } from './passkey.ts';
import { ProviderWindow, useSingleSignOn } from './single-sign-on.tsx';

/** Asks for the second factor again, then continues the action that needs it. */
export function StepUp({ onDone }: { onDone(): void }) {
  const { action: texts, signIn } = useTexts();
  const { session } = useApp();
  const hasProvider = useSingleSignOn() && session?.user.singleSignOn === true;
  const hasTotp = session?.user.factors.includes('totp') ?? false;
  const client = useQueryClient();
  const [totp, setTotp] = useState('');
  const { mutate, error, isPending } = useMutation({
    mutationFn: (prove: () => Promise<unknown>) => prove(),
    onSuccess: onDone,
  });
  // The identity provider has changed the session.
  const done = () => void client.invalidateQueries({ queryKey: ['session'] }).then(onDone);
  const confirm = () => send('POST', '/session/step-up', { body: { totp: totp.replace(/\s/g, '') } });
  return (
    <form onSubmit={submits(() => mutate(confirm))}>
      <Alert variant="light" title={texts.stepUp}>
        <Stack gap="xs">
          <Text size="sm">{texts.stepUpHint}</Text>
          <Group align="flex-end" gap={8}>
            {hasTotp && (
              <>
                <TextInput
                  label={texts.code}
                  value={totp}
                  required
                  w={140}
                  inputMode="numeric"
                  autoComplete="one-time-code"
                  autoFocus
                  onChange={(event) => setTotp(event.currentTarget.value)}
                />
                <Button type="submit" size="sm" loading={isPending}>
                  {texts.confirm}
                </Button>
              </>
            )}
            {hasProvider && <ProviderWindow purpose="step-up" onDone={done} />}
            {session?.user.factors.includes('passkey') && canUsePasskeys() && (
              <Anchor component="button" type="button" size="sm" onClick={() => mutate(stepUpByPasskey)}>
                {signIn.passkey}
              </Anchor>
            )}
          </Group>
          {error && <Problem error={error} />}
        </Stack>
      </Alert>
    </form>
  );
}
