import { Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import type { Item } from '../ui/item.ts';
import { Rows } from '../ui/list.tsx';
import { Empty, Panel } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { useRulesTexts } from './rules-texts.ts';

type Items = readonly Item[];
type Books = Answer<'books.rules'>;

const RULES = [
  { key: 'breakage', act: 'books.breakage-rate', columns: ['product', 'from', 'reason', 'by', 'percent'] },
  { key: 'dormancy', act: 'books.dormancy', columns: ['name', 'product', 'from', 'basis', 'months'] },
  { key: 'vat', act: 'books.vat', columns: ['product', 'from', 'treatment', 'country', 'rate'] },
  { key: 'accounts', act: 'books.account', columns: ['kind', 'product', 'merchantId', 'taxCode', 'number'] },
] as const;

/** The rules of the reports: estimates, laws, and the account numbers of the accounting system. */
export function Rules() {
  const texts = useRulesTexts();
  const { everyMerchant } = useTexts().books;
  const { thing: books, instead } = useThing<Books>('/books/rules');
  const { thing: numbers } = useThing<Item & { readonly items: Items }>('/books/accounts');
  if (!books || !numbers) return instead;
  const cell = (name: string, item: Item): ReactNode => {
    if (name === 'product' && item['product'] === null) return texts.every;
    if (name === 'merchantId' && item['merchantId'] === null) return everyMerchant;
    return undefined;
  };
  const items = { ...books, accounts: numbers.items };
  return (
    <Stack gap="lg">
      <Text size="sm" className="quiet">
        {texts.lead}
      </Text>
      {RULES.map(({ key, act, columns }) => (
        <Panel key={key} title={texts[key]} aside={<Actions acts={[{ name: act }]} />}>
          <Text size="sm" className="quiet" px="var(--edge)" pb="xs">
            {texts[`${key}Use`]}
          </Text>
          {items[key].length === 0 ? (
            <Empty text={texts.none} />
          ) : (
            <Rows items={items[key]} columns={columns} cell={cell} />
          )}
        </Panel>
      ))}
    </Stack>
  );
}
