import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiProblem, get, type Page, send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { Panel, Problem, submits } from '../ui/parts.tsx';
import { addPasskey, canUsePasskeys } from '../ui/passkey.ts';
import { PasswordField } from '../ui/password.tsx';
import { StepUp } from '../ui/step-up.tsx';

/** Performs an action that may first ask for the second factor, and shows the result. */
function useAttempt() {
  const texts = useTexts().action;
  const { mutate, variables, error } = useMutation({
    mutationFn: (run: () => Promise<void>) => run(),
    onSuccess: () => notifications.show({ message: texts.done }),
  });
  const needsStepUp = error instanceof ApiProblem && error.code === 'step-up-required';
  const outcome = (
    <>
      {error && !needsStepUp && <Problem error={error} />}
      {needsStepUp && variables && <StepUp onDone={() => mutate(variables)} />}
    </>
  );
  return { attempt: mutate, outcome };
}

export function Password() {
  const { account: texts, signIn } = useTexts();
  const [values, setValues] = useState({ password: '', newPassword: '' });
  const { attempt, outcome } = useAttempt();
  const change = async () => {
    await send('POST', '/account/password', { body: values });
    setValues({ password: '', newPassword: '' });
  };
  return (
    <Panel title={signIn.password} padded>
      <form onSubmit={submits(() => attempt(change))}>
        <Stack gap="sm">
          <PasswordField
            label={texts.oldPassword}
            required
            autoComplete="current-password"
            value={values.password}
            onChange={(event) => setValues({ ...values, password: event.currentTarget.value })}
          />
          <PasswordField
            label={texts.newPassword}
            required
            minLength={12}
            autoComplete="new-password"
            value={values.newPassword}
            onChange={(event) => setValues({ ...values, newPassword: event.currentTarget.value })}
          />
          <Group>
            <Button type="submit" variant="default">
              {texts.changePassword}
            </Button>
          </Group>
        </Stack>
      </form>
      {outcome}
    </Panel>
  );
}

export function RecoveryCodes() {
  const texts = useTexts();
  const [codes, setCodes] = useState<readonly string[]>();
  const { attempt, outcome } = useAttempt();
  const renew = async () => {
    const answer = await send<{ recoveryCodes: string[] }>('POST', '/account/recovery-codes', { body: {} });
    setCodes(answer.recoveryCodes);
  };
  return (
    <Panel title={texts.invitation.codes} padded>
      <Stack gap="sm">
        <Text size="sm" className="quiet">
          {texts.invitation.codesHint}
        </Text>
        {codes && <pre className="code">{codes.join('\n')}</pre>}
        {outcome}
        <Group>
          <Button variant="default" onClick={() => attempt(renew)}>
            {texts.account.renewCodes}
          </Button>
        </Group>
      </Stack>
    </Panel>
  );
}

type Passkey = { readonly id: string; readonly name: string };

export function Passkeys() {
  const texts = useTexts().account;
  const client = useQueryClient();
  const [name, setName] = useState('');
  const { attempt, outcome } = useAttempt();
  const { data } = useQuery({
    queryKey: ['passkeys'],
    queryFn: () => get<Page<Passkey>>('/account/passkeys'),
    retry: false,
  });
  const refresh = () => client.invalidateQueries({ queryKey: ['passkeys'] });
  const add = async () => {
    await addPasskey(name);
    setName('');
    await refresh();
  };
  const remove = (id: string) => async () => {
    await send('DELETE', `/account/passkeys/${encodeURIComponent(id)}`);
    await refresh();
  };
  if (!canUsePasskeys()) return null;
  return (
    <Panel title={texts.passkeys} padded>
      <Stack gap="sm">
        {data?.items.map((each) => (
          <Group key={each.id} justify="space-between">
            <Text size="sm">{each.name}</Text>
            <Button variant="default" size="compact-xs" onClick={() => attempt(remove(each.id))}>
              {texts.remove}
            </Button>
          </Group>
        ))}
        <form onSubmit={submits(() => attempt(add))}>
          <Group gap={8} align="flex-end" wrap="nowrap">
            <TextInput
              flex={1}
              label={texts.passkeyName}
              required
              maxLength={100}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <Button type="submit" variant="default" size="sm">
              {texts.add}
            </Button>
          </Group>
        </form>
        {outcome}
      </Stack>
    </Panel>
  );
}
