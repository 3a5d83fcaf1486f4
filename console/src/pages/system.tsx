import { Alert, Button, Stack } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { type Item, List, Rows } from '../ui/list.tsx';
import { Head, Panel, Problem } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

type Result = { readonly ok: boolean; readonly checks: readonly Item[] };

export function Screen() {
  const texts = useTexts().system;
  const { offers } = useApp();
  const { data, error, isPending, mutate } = useMutation({
    mutationFn: () => send<Result>('POST', '/reconcile', { body: {} }),
  });
  return (
    <>
      <Head title={texts.title}>
        <Button onClick={() => mutate()} loading={isPending}>
          {texts.reconcile}
        </Button>
        <Same name="ledger.reconcile" />
      </Head>
      <Stack>
        {error && <Problem error={error} />}
        {data && (
          <>
            <Alert color={data.ok ? 'teal' : 'red'} variant="light">
              {data.ok ? texts.ok : texts.differs}
            </Alert>
            <Panel>
              <Rows items={data.checks} columns={['name', 'ok', 'checked', 'differing']} />
            </Panel>
          </>
        )}
        {offers('keyring.show') && (
          <List
            path="/keyring"
            columns={['keyId', 'state', 'vouchers', 'webhookSecrets', 'inKeyRing', 'since']}
          />
        )}
        {offers('job.list') && (
          <List
            path="/jobs"
            refetchMs={5_000}
            columns={['id', 'operation', 'state', 'done', 'failed', 'total', 'createdBy', 'createdAt']}
          />
        )}
      </Stack>
    </>
  );
}
