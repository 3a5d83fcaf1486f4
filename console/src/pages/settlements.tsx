import { Stack } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { type Filters, type Item, List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const texts = useTexts();
  const navigate = useNavigate();
  const { door, offers } = useApp();
  const search = useSearch({ strict: false }) as Filters;
  const openDraft = ({ items = [] }: { items?: readonly Item[] }) => {
    if (items.length === 1) void navigate({ to: `/settlements/${items[0]?.['id']}` });
  };
  const draft = { name: 'settlement.draft', onDone: openDraft };
  return (
    <>
      <Head title={texts.nav.settlements}>
        <Actions
          primary
          acts={[draft, { name: 'settlement.file', given: { settlements: undefined, again: undefined } }]}
        />
        <Same name="settlement.list" given={search} />
      </Head>
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
          to={({ id }) => `/settlements/${id}`}
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
