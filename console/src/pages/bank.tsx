import { Stack } from '@mantine/core';
import { useState } from 'react';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useFilters } from '../ui/address.ts';
import { type Item, List, type ListProps, Rows } from '../ui/list.tsx';
import { PageHead, PageTabs, useTab } from '../ui/page.tsx';
import { Empty, Panel } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { BankImport } from './bank-import.tsx';

type Match = Answer<'bank.match'>;

type Tab = Pick<ListProps, 'of' | 'columns' | 'narrow'> & {
  readonly key: 'entries' | 'movements' | 'statements' | 'accounts';
  readonly empty: 'noEntries' | 'noMovements' | 'noAccounts';
};

const TABS: readonly Tab[] = [
  {
    key: 'entries',
    of: 'bank.entries',
    columns: ['bookedOn', 'account', 'description', 'reference', 'matched', 'amount'],
    narrow: ['bookedOn', 'description', 'amount'],
    empty: 'noEntries',
  },
  {
    key: 'movements',
    of: 'bank.movements',
    columns: ['day', 'kind', 'reference', 'bankReference', 'matched', 'amount'],
    narrow: ['day', 'kind', 'amount'],
    empty: 'noMovements',
  },
  {
    key: 'statements',
    of: 'bank.statements',
    columns: ['closingOn', 'account', 'entries', 'importedBy', 'opening', 'gap', 'missing', 'closing'],
    narrow: ['closingOn', 'entries', 'gap', 'missing', 'closing'],
    empty: 'noEntries',
  },
  {
    key: 'accounts',
    of: 'bank.accounts',
    columns: ['name', 'iban', 'currency', 'from', 'own'],
    narrow: ['name', 'currency', 'own'],
    empty: 'noAccounts',
  },
];

/** Compares the bank account with the books: imported statements, and matches. */
export function Screen() {
  const { bank: texts, nav } = useTexts();
  const { tab: _tab, ...search } = useFilters();
  const tab = useTab(TABS.map(({ key }) => key));
  const [isImporting, setImporting] = useState(false);
  const [found, setFound] = useState<Match>();
  const tabs = TABS.map(({ key, empty, ...list }) => ({
    key,
    label: texts[key],
    body: <List {...list} search={search} empty={<Empty text={texts[empty]} />} actions={unmatch} />,
  }));
  return (
    <>
      <PageHead title={nav.bank} note={texts.lead}>
        <BankImport isOpen={isImporting} setOpen={setImporting} />
        <Actions
          acts={[
            { name: 'bank.match', onDone: (answer) => setFound(answer as Match) },
            { name: 'bank.account' },
            { name: 'bank.mapping' },
          ]}
        />
        <Same name={`bank.${tab}`} given={search} />
      </PageHead>
      <Stack>
        {found && found.payouts.length > 0 && (
          <Panel title={texts.payouts}>
            <Rows
              items={found.payouts}
              columns={['bookedOn', 'merchant', 'number', 'bankReference', 'amount']}
              narrow={['merchant', 'number', 'amount']}
              actions={pay}
            />
          </Panel>
        )}
        <PageTabs tabs={tabs} />
      </Stack>
    </>
  );
}

/** Books a payout that the bank made. */
function pay({ settlement: id, bankReference, bookedOn: valueDate }: Item) {
  const given = { id, bankReference, valueDate };
  return <Actions of={String(id)} acts={[{ name: 'settlement.pay', given }]} />;
}

/** Ends the matches of an entry or a movement that has some. */
function unmatch({ id, matched }: Item) {
  const acts = [Number(matched) !== 0 && { name: 'bank.unmatch', given: { id: String(id) } }];
  return <Actions shown={0} of={String(id)} acts={acts} />;
}
