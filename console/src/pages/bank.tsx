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
      path: '/bank/entries',
      columns: ['bookedOn', 'account', 'description', 'reference', 'matched', 'amount', ''],
      filters: ['account', 'open'],
      empty: texts.bank.noEntries,
    },
    {
      key: 'movements',
      path: '/bank/movements',
      columns: ['day', 'kind', 'reference', 'bankReference', 'matched', 'amount'],
      filters: ['open'],
      empty: texts.bank.noMovements,
    },
    {
      key: 'statements',
      path: '/bank/statements',
      columns: ['closingOn', 'account', 'entries', 'importedBy', 'opening', 'gap', 'missing', 'closing'],
      filters: ['account'],
      empty: texts.bank.noEntries,
    },
    {
      key: 'accounts',
      path: '/bank/accounts',
      columns: ['name', 'iban', 'currency', 'from', 'own'],
      filters: [],
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
              columns={['bookedOn', 'merchant', 'number', 'bankReference', 'amount', '']}
              wide={['bookedOn', 'bankReference']}
              cell={(name, { settlement, bankReference, bookedOn }) =>
                name === '' ? (
                  <Actions
                    of={String(settlement)}
                    acts={[
                      {
                        name: 'settlement.pay',
                        given: { id: settlement, bankReference, valueDate: bookedOn },
                      },
                    ]}
                  />
                ) : undefined
              }
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
          {lists.map(({ key, path, columns, filters, empty }) => (
            <Tabs.Panel key={key} value={key}>
              <List
                path={path}
                columns={columns}
                wide={[
                  'account',
                  'reference',
                  'bankReference',
                  'matched',
                  'importedBy',
                  'opening',
                  'iban',
                  'from',
                ]}
                search={search}
                filters={filters}
                empty={<Empty text={empty} />}
                cell={(name, item) =>
                  name === '' && Number(item['matched']) !== 0 ? (
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
