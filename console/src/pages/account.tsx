import { Button, Stack } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ApiProblem, get, type Page, send } from '../api.ts';
import { useLanguage, useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { type Item, Rows } from '../ui/list.tsx';
import { Busy, Head, Panel, Problem } from '../ui/parts.tsx';
import { Fields } from '../ui/value.tsx';
import { Passkeys, Password, RecoveryCodes } from './account-factors.tsx';

/** The page on which people change their own account. */
export function Screen() {
  const { account: texts, nav } = useTexts();
  const { session } = useApp();
  return (
    <>
      <Head title={nav.account} />
      <div className="two">
        <Sessions />
        <Stack>
          <Panel padded title={texts.person}>
            {session && (
              <Fields of={session.user} without={['id', 'merchantId', 'merchantName', 'singleSignOn']} />
            )}
          </Panel>
          <Password />
          <RecoveryCodes />
          <Passkeys />
        </Stack>
      </div>
    </>
  );
}

function Sessions() {
  const {
    texts: { account: texts },
    problems,
  } = useLanguage();
  const client = useQueryClient();
  const { data, error } = useQuery({ queryKey: ['sessions'], queryFn: () => get<Page<Item>>('/sessions') });
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
