import { Stack } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useFilters } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { type Item, List } from '../ui/list.tsx';
import { PageHead } from '../ui/page.tsx';
import { Empty } from '../ui/parts.tsx';

export function Screen() {
  const texts = useTexts();
  const navigate = useNavigate();
  const { door, offers } = useApp();
  const search = useFilters();
  const openDraft = ({ items = [] }: { items?: readonly Item[] }) => {
    if (items.length === 1) void navigate({ to: `/settlements/${items[0]?.['id']}` });
  };
  const draft = { name: 'settlement.draft', onDone: openDraft };
  return (
    <>
      <PageHead
        title={texts.nav.settlements}
        primary
        acts={[draft, { name: 'settlement.file', given: { settlements: undefined, again: undefined } }]}
        of="settlement.list"
        given={search}
      />
      <Stack>
        <List
          of="settlement.list"
          search={search}
          columns={[
            'number',
            'merchantId',
            'state',
            'firstDay',
            'lastDay',
            'dueOn',
            'openDisputes',
            'payable',
          ]}
          narrow={[door === 'operator' ? 'merchantId' : 'number', 'state', 'payable']}
          empty={
            <Empty
              text={texts.empty[door === 'operator' ? 'settlements' : 'statements']}
              action={<Actions primary acts={[draft]} />}
            />
          }
        />
        {offers('settlement.files') && (
          <List
            of="settlement.files"
            title={texts.settlement.files}
            columns={['madeAt', 'format', 'settlements', 'madeBy', 'again', 'sha256']}
          />
        )}
      </Stack>
    </>
  );
}
