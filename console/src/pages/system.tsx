import { Stack } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { List } from '../ui/list.tsx';
import { PageHead } from '../ui/page.tsx';
import { Empty } from '../ui/parts.tsx';
import { useWords } from '../ui/words.ts';

/** Jobs, and the keys that seal codes and PINs. */
export function Screen() {
  const texts = useTexts();
  const { action } = useWords();
  const navigate = useNavigate();
  const { offers } = useApp();
  return (
    <>
      <PageHead
        title={texts.nav.system}
        primary
        acts={[{ name: 'ledger.reconcile', onDone: ({ id }) => void navigate({ to: `/jobs/${id}` }) }]}
        of="ledger.reconcile"
      />
      <Stack gap="lg">
        {offers('job.list') && (
          <List
            title={texts.system.jobs}
            of="job.list"
            columns={['createdAt', 'operation', 'state', 'createdBy', 'done', 'total']}
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
