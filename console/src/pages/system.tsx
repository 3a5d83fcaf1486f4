import { Stack } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { useWords } from '../ui/words.ts';

/** Jobs, and the keys that seal codes and PINs. */
export function Screen() {
  const texts = useTexts();
  const { action } = useWords();
  const navigate = useNavigate();
  const { offers } = useApp();
  return (
    <>
      <Head title={texts.system.title}>
        <Actions
          primary
          acts={[{ name: 'ledger.reconcile', onDone: ({ id }) => void navigate({ to: `/jobs/${id}` }) }]}
        />
        <Same name="ledger.reconcile" />
      </Head>
      <Stack gap="lg">
        {offers('job.list') && (
          <List
            title={texts.system.jobs}
            of="job.list"
            refetchMs={5_000}
            columns={['createdAt', 'operation', 'state', 'createdBy', 'done', 'total']}
            to={({ id }) => `/jobs/${id}`}
            cell={(name, item) => (name === 'operation' ? action(String(item[name])).label : undefined)}
            empty={<Empty text={texts.empty.jobs} />}
          />
        )}
        {offers('keyring.show') && (
          <List
            title={texts.system.keyRing}
            of="keyring.show"
            narrow={['keyId', 'state', 'vouchers']}
            brief
          />
        )}
      </Stack>
    </>
  );
}
