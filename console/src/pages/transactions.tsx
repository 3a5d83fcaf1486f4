import { Tabs } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { type Filters, List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const texts = useTexts();
  const navigate = useNavigate();
  const { offers } = useApp();
  const { tab = 'booked', ...search } = useSearch({ strict: false }) as Filters;
  const declines = tab === 'declined' && offers('decline.list');
  return (
    <>
      <Head title={texts.nav.transactions}>
        <Same name={declines ? 'decline.list' : 'transaction.list'} given={search} />
      </Head>
      <Tabs
        value={declines ? 'declined' : 'booked'}
        mb="md"
        onChange={(chosen) =>
          void navigate({ to: '.', search: (chosen === 'booked' ? {} : { tab: chosen }) as never })
        }
      >
        <Tabs.List>
          <Tabs.Tab value="booked">{texts.transactions.booked}</Tabs.Tab>
          {offers('decline.list') && <Tabs.Tab value="declined">{texts.transactions.declined}</Tabs.Tab>}
        </Tabs.List>
      </Tabs>
      {declines ? (
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
          empty={<Empty text={texts.empty.declines} />}
        />
      ) : (
        <List
          of="transaction.list"
          search={search}
          columns={['timestamp', 'kind', 'merchantId', 'serialNumber', 'voucherCode', 'reference', 'amount']}
          narrow={['timestamp', 'kind', 'amount']}
          to={({ transactionId }) => `/transactions/${transactionId}`}
          empty={<Empty text={texts.empty.transactions} />}
        />
      )}
    </>
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
  const { codes } = useTexts().declined;
  return (
    <>
      <span className="mono">{code}</span> {(codes as Readonly<Record<string, string>>)[code]}
    </>
  );
}
