import { useTexts } from '../i18n/index.tsx';
import { type Filters, useFilters } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { List } from '../ui/list.tsx';
import { PageHead, PageTabs, useTab } from '../ui/page.tsx';
import { Empty } from '../ui/parts.tsx';

export function Screen() {
  const { nav, transactions: texts } = useTexts();
  const { offers } = useApp();
  const { tab: _tab, ...search } = useFilters();
  const booked = { key: 'booked', label: texts.booked, body: <Booked search={search} /> };
  const declined = { key: 'declined', label: texts.declined, body: <Declined search={search} /> };
  const tabs = offers('decline.list') ? [booked, declined] : [booked];
  const isDeclined = useTab(tabs.map(({ key }) => key)) === 'declined';
  return (
    <>
      <PageHead
        title={nav.transactions}
        of={isDeclined ? 'decline.list' : 'transaction.list'}
        given={search}
      />
      <PageTabs tabs={tabs} />
    </>
  );
}

function Booked({ search }: { search: Filters }) {
  const texts = useTexts().empty;
  return (
    <List
      of="transaction.list"
      search={search}
      columns={['timestamp', 'kind', 'merchantId', 'serialNumber', 'voucherCode', 'reference', 'amount']}
      narrow={['timestamp', 'kind', 'amount']}
      empty={<Empty text={texts.transactions} />}
    />
  );
}

function Declined({ search }: { search: Filters }) {
  const texts = useTexts().empty;
  return (
    <List
      of="decline.list"
      search={search}
      narrow={['at', 'code', 'amount']}
      cell={(name, { code, amount, currency }) => {
        if (name === 'code') return <Decline code={String(code)} />;
        return name === 'amount' && amount !== null && currency === null ? (
          <Bare amount={Number(amount)} />
        ) : undefined;
      }}
      empty={<Empty text={texts.declines} />}
    />
  );
}

/** The amount of a request whose code is unknown: no voucher says in which currency it was meant. */
function Bare({ amount }: { amount: number }) {
  const { noCurrency } = useTexts().declined;
  const format = useFormat();
  return (
    <span className="quiet" title={noCurrency}>
      {format.number(amount)}
    </span>
  );
}

/** The reason for a decline, with the status code that the till got. */
function Decline({ code }: { code: string }) {
  const { codes } = useTexts();
  return (
    <>
      <span className="mono">{code}</span> {codes[code]}
    </>
  );
}
