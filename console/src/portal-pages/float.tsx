import { Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { reports } from '../../generated/reports.ts';
import type { PortalAnswer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { dayAfter, readReport } from '../reports.ts';
import { useFilters } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { AtField } from '../ui/at.tsx';
import { Choice } from '../ui/choice.tsx';
import { Floats } from '../ui/floats.tsx';
import { useFormat } from '../ui/format.ts';
import { todayIn } from '../ui/format-of.ts';
import { useItems } from '../ui/items.ts';
import { Rows } from '../ui/list.tsx';
import { PageHead } from '../ui/page.tsx';
import { Busy, Empty, Panel, Problem } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';
import { transferCode } from './transfer-code.ts';

const QrCode = lazy(async () => ({ default: (await import('qrcode.react')).QRCodeSVG }));

/** The float, how to pay in, and its movements. */
export function Screen() {
  const texts = useTexts();
  const { session, offers } = useApp();
  const { at } = useFilters();
  return (
    <>
      <PageHead title={texts.nav.floats} of="float.show" given={{ at }}>
        <AtField />
      </PageHead>
      <Stack gap="lg">
        <div className="stats">
          <Floats to="/float" at={at} />
        </div>
        <PayIn reference={texts.float.reference(session?.user.merchantId ?? '')} />
        {offers('books.report') && <Statement />}
      </Stack>
    </>
  );
}

/** To which account a merchant transfers money, and what it writes into the transfer. */
function PayIn({ reference }: { reference: string }) {
  const { float: texts } = useTexts();
  const { label } = useWords();
  const accounts = useItems<PortalAnswer<'bank.pay-in'>['items'][number]>('/bank/pay-in') ?? [];
  return (
    <Panel title={texts.payIn} padded>
      <Text size="sm" mb="sm">
        {accounts.length > 0 ? texts.payInTo : texts.payInHow}
      </Text>
      <dl className="fields">
        {accounts.map(({ currency, iban, holder }) => (
          <div key={currency} style={{ display: 'contents' }}>
            <dt>{currency}</dt>
            <dd>
              {holder && <bdi className="below">{holder}</bdi>}
              <Copyable text={iban} shown={inFours(iban)} />
              {/* Apps of banks read a code for euros, which names the holder. */}
              {currency === 'EUR' && holder && (
                <Suspense>
                  <div className="below">
                    <QrCode
                      value={transferCode({ holder, iban, reference })}
                      size={132}
                      marginSize={2}
                      title={texts.payInCode}
                    />
                    <small className="quiet below">{texts.payInCode}</small>
                  </div>
                </Suspense>
              )}
            </dd>
          </div>
        ))}
        <dt>{label('reference')}</dt>
        <dd>
          <Copyable text={reference} />
        </dd>
      </dl>
    </Panel>
  );
}

/** An IBAN in groups of four, as it is printed. */
const inFours = (iban: string) => iban.replace(/.{4}(?=.)/g, '$&\u00a0');

const MONTHS = 3;
const STATEMENT = reports.find(({ name }) => name === 'float-statement')?.figures[''];

/** R6: every movement of the float in a month. */
function Statement() {
  const texts = useTexts();
  const { kind } = useWords();
  const format = useFormat();
  const today = todayIn(useApp().session?.zone ?? 'UTC');
  const { thing: merchant } = useThing<PortalAnswer<'merchant.show'>>('/merchant');
  // The clock of the browser may be behind that of the service.
  const created = merchant?.createdAt.slice(0, 10) ?? today;
  const since = created < today ? created : today;
  const months = Array.from({ length: MONTHS }, (_, back) => {
    const first = new Date(`${today.slice(0, 7)}-01T00:00:00Z`);
    first.setUTCMonth(first.getUTCMonth() - back);
    return first.toISOString().slice(0, 7);
  }).filter((each) => each >= since.slice(0, 7));
  const [month = today.slice(0, 7), setMonth] = useState(months[0]);
  const last = new Date(`${month}-01T00:00:00Z`);
  last.setUTCMonth(last.getUTCMonth() + 1);
  const end = last.toISOString().slice(0, 10);
  const first = `${month}-01`;
  const query = { from: first < since ? since : first, to: end > today ? dayAfter(today) : end };
  const { data, error } = useQuery({
    queryKey: ['statement', query],
    enabled: merchant !== undefined,
    queryFn: () => readReport('float-statement', query),
    retry: false,
  });
  return (
    <Panel
      title={texts.float.statement}
      aside={
        <Group>
          <Choice
            label={texts.float.month}
            of={Object.fromEntries(months.map((each) => [each, `${format.month(each)}`]))}
            value={month}
            onChange={setMonth}
          />
        </Group>
      }
    >
      {error ? (
        <div className="panel-body">
          <Problem error={error} />
        </div>
      ) : !data ? (
        <Busy />
      ) : data.tables.length === 0 ? (
        <Empty text={texts.books.noRows} />
      ) : (
        data.tables.map((table) => (
          <div key={table.currency}>
            <Text size="sm" className="quiet" px="var(--edge)">
              {table.currency}
            </Text>
            <Rows
              items={table.rows}
              columns={['time', 'kind', 'reference', 'amount', 'balance']}
              narrow={['time', 'kind', 'amount', 'balance']}
              cell={(name, item) => (name === 'kind' ? kind(String(item[name])) : undefined)}
              figures={STATEMENT}
              around={{ ...data, currency: table.currency }}
            />
          </div>
        ))
      )}
    </Panel>
  );
}
