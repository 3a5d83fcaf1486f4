import { Stack, Tabs } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { type Filters, List, Rows } from '../ui/list.tsx';
import { Empty, Head, Panel } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { BankImport } from './bank-import.tsx';

/** Compares the bank account with the books: imported statements, and matches. */
export function Screen() {
  const texts = useTexts();
  const navigate = useNavigate();
  const { tab = 'entries', ...search } = useSearch({ strict: false }) as Filters;
  const [isImporting, setImporting] = useState(false);
  const [found, setFound] = useState<Answer<'bank.match'>>();
  const lists = [
    {
      key: 'entries',
      of: 'bank.entries',
      columns: ['bookedOn', 'account', 'description', 'reference', 'matched', 'amount'],
      narrow: ['bookedOn', 'description', 'amount'],
      empty: texts.bank.noEntries,
    },
    {
      key: 'movements',
      of: 'bank.movements',
      columns: ['day', 'kind', 'reference', 'bankReference', 'matched', 'amount'],
      narrow: ['day', 'kind', 'amount'],
      empty: texts.bank.noMovements,
    },
    {
      key: 'statements',
      of: 'bank.statements',
      columns: ['closingOn', 'account', 'entries', 'importedBy', 'opening', 'gap', 'missing', 'closing'],
      narrow: ['closingOn', 'entries', 'gap', 'missing', 'closing'],
      empty: texts.bank.noEntries,
    },
    {
      key: 'accounts',
      of: 'bank.accounts',
      columns: ['name', 'iban', 'currency', 'from', 'own'],
      narrow: ['name', 'currency', 'own'],
      empty: texts.bank.noAccounts,
    },
  ] as const;
  return (
    <>
      <Head title={texts.nav.bank} note={texts.bank.lead}>
        <BankImport isOpen={isImporting} setOpen={setImporting} />
        <Actions
          acts={[
            { name: 'bank.match', onDone: (answer) => setFound(answer as Answer<'bank.match'>) },
            { name: 'bank.account' },
            { name: 'bank.mapping' },
          ]}
        />
        <Same name={`bank.${tab}`} given={search} />
      </Head>
      <Stack>
        {found && found.payouts.length > 0 && (
          <Panel title={texts.bank.payouts}>
            <Rows
              items={found.payouts}
              columns={['bookedOn', 'merchant', 'number', 'bankReference', 'amount']}
              narrow={['merchant', 'number', 'amount']}
              actions={({ settlement, bankReference, bookedOn }) => (
                <Actions
                  of={String(settlement)}
                  acts={[
                    {
                      name: 'settlement.pay',
                      given: { id: settlement, bankReference, valueDate: bookedOn },
                    },
                  ]}
                />
              )}
            />
          </Panel>
        )}
        <Tabs
          value={tab}
          onChange={(next) => void navigate({ to: '.', search: { tab: next } as never })}
          keepMounted={false}
        >
          <Tabs.List mb="md">
            {lists.map(({ key }) => (
              <Tabs.Tab key={key} value={key}>
                {texts.bank[key]}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {lists.map(({ key, empty, ...list }) => (
            <Tabs.Panel key={key} value={key}>
              <List
                {...list}
                search={search}
                empty={<Empty text={empty} />}
                actions={(item) =>
                  Number(item['matched']) !== 0 ? (
                    <Actions
                      shown={0}
                      of={String(item['id'])}
                      acts={[{ name: 'bank.unmatch', given: { id: String(item['id']) } }]}
                    />
                  ) : undefined
                }
              />
            </Tabs.Panel>
          ))}
        </Tabs>
      </Stack>
    </>
  );
}
