import { Stack } from '@mantine/core';
import type { PortalAnswer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { Figure } from '../ui/figure.tsx';
import { Floats } from '../ui/floats.tsx';
import { useFormat } from '../ui/format.ts';
import { List } from '../ui/list.tsx';
import { Empty, Head, Stat } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { State } from '../ui/value.tsx';
import { Sales, SalesCharts } from './sales.tsx';

/** What was redeemed, the float, the amount to be settled, and the latest transactions. */
export function Screen() {
  const texts = useTexts();
  const { offers } = useApp();
  return (
    <>
      <Head title={texts.nav.overview} />
      <Stack gap="lg">
        <div className="stats">
          {offers('books.redeemed') && <Sales />}
          {offers('float.show') && <Floats to="/float" />}
          {offers('settlement.list') && <ToBeSettled />}
        </div>
        {offers('books.redeemed') && <SalesCharts />}
        <List
          title={texts.overview.latest}
          of="transaction.list"
          limit={10}
          empty={<Empty text={texts.empty.transactions} />}
          brief
        />
      </Stack>
    </>
  );
}

/** The newest statement in each currency. */
function ToBeSettled() {
  const texts = useTexts();
  const format = useFormat();
  const { thing } = useThing<PortalAnswer<'settlement.list'>>('/settlements');
  const figures = useApp().operations?.get('settlement.list')?.figures;
  const newest = new Map<string, PortalAnswer<'settlement.list'>['items'][number]>();
  for (const each of thing?.items ?? []) if (!newest.has(each.currency)) newest.set(each.currency, each);
  return [...newest.values()].map((each) => (
    <Stat
      key={each.id}
      label={texts.overview.settlement}
      to={`/settlements/${each.id}`}
      note={<State name={each.state} />}
    >
      <Figure of={figures?.['items.payable']} value={each.payable} around={[each]}>
        {format.money(each.payable, each.currency)}
      </Figure>
    </Stat>
  ));
}
