import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { PeopleAnswer } from '../answers.ts';
import { ApiProblem, get, send } from '../api.ts';
import { useLanguage, useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { useItems } from '../ui/items.ts';
import { Rows } from '../ui/list.tsx';
import { Busy, Head, Panel, Problem, submits } from '../ui/parts.tsx';
import { addPasskey, canUsePasskeys } from '../ui/passkey.ts';
import { PasswordField } from '../ui/password.tsx';
import { RecoveryCodes as Codes } from '../ui/secrets.tsx';
import { StepUp } from '../ui/step-up.tsx';
import { Fields } from '../ui/value.tsx';
import { useValues } from '../ui/values.ts';

/** The page on which people change their own account. */
export function Screen() {
  const { account: texts, nav } = useTexts();
  const { session } = useApp();
  return (
    <>
      <Head title={nav.account} />
      <Stack>
        <div className="two even">
          <Stack>
            <Panel padded title={texts.person}>
              {session && (
                <Fields of={session.user} without={['id', 'merchantId', 'merchantName', 'singleSignOn']} />
              )}
            </Panel>
            <RecoveryCodes />
            <Passkeys />
          </Stack>
          <Password />
        </div>
        <Sessions />
      </Stack>
    </>
  );
}

function Sessions() {
  const {
    texts: { account: texts },
    problems,
  } = useLanguage();
  const client = useQueryClient();
  const { data, error } = useQuery({
    queryKey: ['sessions'],
    queryFn: () => get<PeopleAnswer<'GET /sessions'>>('/sessions'),
  });
  const end = async (change: Promise<unknown>) => {
    try {
      await change;
      await client.invalidateQueries({ queryKey: ['sessions'] });
    } catch (caught) {
      notifications.show({
        color: 'red',
        message: problems[(caught as ApiProblem).code] ?? (caught as Error).message,
      });
    }
  };
  return (
    <Panel
      title={texts.sessions}
      aside={
        (data?.items.length ?? 0) > 1 && (
          <Button variant="default" onClick={() => end(send('POST', '/sessions/end-others', { body: {} }))}>
            {texts.endOthers}
          </Button>
        )
      }
    >
      {error ? (
        <Problem error={error} />
      ) : data ? (
        <Rows
          items={data.items}
          columns={['agent', 'address', 'lastSeenAt']}
          narrow={['agent', 'lastSeenAt']}
          cell={(name, item) =>
            name === 'agent' ? (
              <span title={String(item['agent'])}>{browserOf(String(item['agent'] ?? '–'))}</span>
            ) : undefined
          }
          actions={(item) =>
            item['current'] ? (
              <span className="quiet">{texts.current}</span>
            ) : (
              <Button
                variant="default"
                size="compact-xs"
                onClick={() => end(send('DELETE', `/sessions/${item['id']}`))}
              >
                {texts.end}
              </Button>
            )
          }
        />
      ) : (
        <Busy />
      )}
    </Panel>
  );
}

const BROWSERS = ['Edg', 'OPR', 'Firefox', 'Chrome', 'Safari'];
const SYSTEMS = ['iPhone', 'iPad', 'Android', 'Windows', 'Mac OS X', 'Linux'];
const NAMES: Readonly<Record<string, string>> = { Edg: 'Edge', OPR: 'Opera', 'Mac OS X': 'macOS' };

/**
 * `Mozilla/5.0 (X11; Linux x86_64) … Chrome/140.0` → Chrome, Linux. Most browsers name other browsers too.
 */
function browserOf(agent: string): string {
  const found = [BROWSERS, SYSTEMS].flatMap((known) => known.find((name) => agent.includes(name)) ?? []);
  return found.map((name) => NAMES[name] ?? name).join(', ') || agent;
}

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

function Password() {
  const { account: texts, signIn } = useTexts();
  const { values, setValues, inputOf } = useValues({ password: '', newPassword: '' });
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
            {...inputOf('password')}
          />
          <PasswordField
            label={texts.newPassword}
            required
            minLength={12}
            autoComplete="new-password"
            {...inputOf('newPassword')}
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

function RecoveryCodes() {
  const texts = useTexts();
  const [codes, setCodes] = useState<readonly string[]>();
  const { attempt, outcome } = useAttempt();
  const renew = async () => {
    const answer = await send<PeopleAnswer<'POST /account/recovery-codes'>>(
      'POST',
      '/account/recovery-codes',
      { body: {} },
    );
    setCodes(answer.recoveryCodes);
  };
  return (
    <Panel title={texts.invitation.codes} padded>
      <Stack gap="sm">
        <Text size="sm" className="quiet">
          {texts.invitation.codesHint}
        </Text>
        {codes && <Codes codes={codes} />}
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

const PASSKEYS = '/account/passkeys';
type Passkey = PeopleAnswer<'GET /account/passkeys'>['items'][number];

function Passkeys() {
  const texts = useTexts().account;
  const client = useQueryClient();
  const [name, setName] = useState('');
  const { attempt, outcome } = useAttempt();
  const passkeys = useItems<Passkey>(PASSKEYS);
  const refresh = () => client.invalidateQueries({ queryKey: ['items', PASSKEYS] });
  const add = async () => {
    await addPasskey(name);
    setName('');
    await refresh();
  };
  const remove = (id: string) => async () => {
    await send('DELETE', `${PASSKEYS}/${encodeURIComponent(id)}`);
    await refresh();
  };
  if (!canUsePasskeys()) return null;
  return (
    <Panel title={texts.passkeys} padded>
      <Stack gap="sm">
        {passkeys?.map((each) => (
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
