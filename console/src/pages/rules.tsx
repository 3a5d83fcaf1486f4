import { Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { type Item, Rows } from '../ui/list.tsx';
import { Empty, Panel } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';

type Items = readonly Item[];
type Books = Answer<'books.rules'>;

/** The rules of the reports: estimates, laws, and the account numbers of the accounting system. */
export function Rules() {
  const {
    rules: texts,
    books: { everyMerchant },
  } = useTexts();
  const { thing: books, instead } = useThing<Books>('/books/rules');
  const { thing: numbers } = useThing<Item & { readonly items: Items }>('/books/accounts');
  if (!books || !numbers) return instead;
  const cell = (name: string, item: Item): ReactNode => {
    if (name === 'product' && item['product'] === null) return texts.every;
    if (name === 'merchantId' && item['merchantId'] === null) return everyMerchant;
    return undefined;
  };
  const panels = [
    {
      title: texts.breakage,
      use: texts.breakageUse,
      act: 'books.breakage-rate',
      items: books.breakage,
      columns: ['product', 'from', 'reason', 'by', 'percent'],
    },
    {
      title: texts.dormancy,
      use: texts.dormancyUse,
      act: 'books.dormancy',
      items: books.dormancy,
      columns: ['name', 'product', 'from', 'basis', 'months'],
    },
    {
      title: texts.vat,
      use: texts.vatUse,
      act: 'books.vat',
      items: books.vat,
      columns: ['product', 'from', 'treatment', 'country', 'rate'],
    },
    {
      title: texts.accounts,
      use: texts.accountsUse,
      act: 'books.account',
      items: numbers.items,
      columns: ['kind', 'product', 'merchantId', 'taxCode', 'number'],
    },
  ];
  return (
    <Stack gap="lg">
      <Text size="sm" className="quiet">
        {texts.lead}
      </Text>
      {panels.map(({ title, use, act, items, columns }) => (
        <Panel key={act} title={title} aside={<Actions acts={[{ name: act }]} />}>
          <Text size="sm" className="quiet" px="var(--edge)" pb="xs">
            {use}
          </Text>
          {items.length === 0 ? (
            <Empty text={texts.none} />
          ) : (
            <Rows items={items} columns={columns} cell={cell} />
          )}
        </Panel>
      ))}
    </Stack>
  );
}
