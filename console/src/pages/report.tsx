import { Alert, Button, Group, Menu, Select, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { reports } from '../../generated/reports.ts';
import { ApiProblem } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import {
  type Cell,
  DAYS,
  type Day,
  dayAfter,
  periodsOf,
  type Report,
  readReport,
  type Table,
} from '../reports.ts';
import { type Filters, useChangeFilters, useFilters, useParam } from '../ui/address.ts';
import { AtInput } from '../ui/at.tsx';
import { saveCsv } from '../ui/csv.ts';
import type { Item } from '../ui/item.ts';
import { Rows } from '../ui/list.tsx';
import { useWhenLoaded } from '../ui/loaded.ts';
import { useMerchants } from '../ui/names.ts';
import { Busy, Empty, Head, Panel, Problem } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { Copyable, State } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';
import type { Kind } from '../ui/xlsx.ts';
import { useRulesTexts } from './rules-texts.ts';

const loadXlsx = () => import('../ui/xlsx.ts');

type Formats = Readonly<Record<string, string>>;

export function Thing() {
  const texts = useTexts();
  const report = useParam('report');
  const search = useFilters();
  const days = useQuery(DAYS);
  const about = reports.find(({ name, number }) => name === report || number === report);
  const isOfMerchant = Boolean(about?.ofMerchant);
  const chosen = chosenOf(search, days.data ?? []);
  const breakdown = about?.breakdowns[0];
  const query = {
    ...chosen,
    merchantId: isOfMerchant ? chosen.merchantId : undefined,
    breakdown: chosen.breakdown === breakdown ? breakdown : undefined,
    at: about?.endsAnytime ? chosen.at : undefined,
  };
  const needsMerchant = isOfMerchant && !query.merchantId;
  const { data, error, isFetching } = useQuery({
    queryKey: ['report', report, query],
    enabled: days.data !== undefined && !needsMerchant,
    queryFn: () => readReport(report, query),
    retry: false,
  });
  const unnumbered = unnumberedOf(error);
  const title = about ? texts.reports[about.name].title : report;
  return (
    <>
      <Head
        back={{ to: '/books?tab=reports', label: texts.nav.books }}
        title={title}
        note={about && texts.reports[about.name].use}
      >
        {data && <Exports of={data} formats={about?.columns ?? {}} />}
        <Same name="books.report" given={{ report, ...query }} />
      </Head>
      <Stack>
        {days.data && (
          <Interval
            key={JSON.stringify(query)}
            days={days.data}
            {...{ query, isOfMerchant, breakdown }}
            endsAnytime={Boolean(about?.endsAnytime)}
          />
        )}
        {needsMerchant && <Alert variant="light">{texts.books.chooseMerchant}</Alert>}
        {unnumbered && <Unnumbered accounts={unnumbered} />}
        {days.error && <Problem error={days.error} />}
        {error && !unnumbered && <Problem error={error} />}
        {isFetching && !data && <Busy />}
        {data && !error && (
          <Tables of={data} formats={about?.columns ?? {}} figures={about?.figures ?? {}} given={query} />
        )}
      </Stack>
    </>
  );
}

type Chosen = {
  from: string;
  to: string;
  merchantId: string | undefined;
  breakdown: string | undefined;
  at: string | undefined;
};
type IntervalProps = {
  days: readonly Day[];
  query: Chosen;
  isOfMerchant: boolean;
  breakdown: string | undefined;
  endsAnytime: boolean;
};

/** The interval in the address, or the newest month. */
function chosenOf(search: Filters, days: readonly Day[]): Chosen {
  const [month] = periodsOf(days);
  return {
    from: search['from'] ?? month?.from ?? '',
    to: search['to'] ?? month?.to ?? '',
    merchantId: search['merchantId'],
    breakdown: search['breakdown'],
    at: search['at'],
  };
}

function Interval({ days, query, isOfMerchant, breakdown, endsAnytime }: IntervalProps) {
  const { books: texts, at: past } = useTexts();
  const { label } = useWords();
  const change = useChangeFilters();
  const { merchants } = useMerchants();
  const [typed, setTyped] = useState(query);
  const periods = periodsOf(days);
  const show = (event: FormEvent) => {
    event.preventDefault();
    change(typed);
  };
  return (
    <form onSubmit={show}>
      <Group align="flex-end" gap={8}>
        <Select
          size="xs"
          w={150}
          label={texts.period}
          placeholder={texts.ownPeriod}
          data={periods.map(({ name }) => ({ value: name, label: texts.periods[name] }))}
          value={periods.find(({ from, to }) => from === typed.from && to === typed.to)?.name ?? null}
          onChange={(chosen) => {
            const { from, to } = periods.find(({ name }) => name === chosen) ?? typed;
            change({ ...typed, from, to });
          }}
        />
        <DayInput label={label('from')} day={typed.from} set={(from) => setTyped({ ...typed, from })} />
        {/* People name the last day, and the API the day after it. */}
        <DayInput
          label={label('to')}
          day={typed.to && dayAfter(typed.to, -1)}
          set={(last) => setTyped({ ...typed, to: last && dayAfter(last) })}
        />
        {isOfMerchant && (
          <Select
            size="xs"
            w={200}
            label={label('merchantId')}
            clearable
            searchable
            placeholder={texts.everyMerchant}
            data={merchants.map(({ id, name }) => ({ value: id, label: name }))}
            value={typed.merchantId ?? null}
            onChange={(chosen) => setTyped({ ...typed, merchantId: chosen ?? undefined })}
          />
        )}
        {breakdown && (
          <Select
            size="xs"
            w={160}
            label={texts.breakdown}
            clearable
            placeholder={texts.noBreakdown}
            data={[{ value: breakdown, label: label(breakdown) }]}
            value={typed.breakdown ?? null}
            onChange={(chosen) => setTyped({ ...typed, breakdown: chosen ?? undefined })}
          />
        )}
        {endsAnytime && (
          <AtInput label={past.label} at={query.at ?? ''} set={(at) => setTyped({ ...typed, at })} />
        )}
        <Button type="submit">{texts.show}</Button>
        {query.at && (
          <Button variant="subtle" onClick={() => change({ ...query, at: undefined })}>
            {past.now}
          </Button>
        )}
      </Group>
    </form>
  );
}

type DayProps = { label: string; day: string; set(day: string): void };

function DayInput({ label, day, set }: DayProps) {
  return (
    <TextInput
      type="date"
      size="xs"
      label={label}
      required
      withAsterisk={false}
      value={day}
      onChange={(event) => set(event.currentTarget.value)}
    />
  );
}

/** The accounts without a number, because of which there is no general ledger. */
function unnumberedOf(error: unknown): readonly Item[] | undefined {
  const faults = error instanceof ApiProblem ? error.fields : [];
  return faults.find(({ rule }) => rule === 'no-number')?.facts?.['accounts'] as Item[] | undefined;
}

function Unnumbered({ accounts }: { accounts: readonly Item[] }) {
  const texts = useTexts();
  const { accounts: title } = useRulesTexts();
  const { word } = useWords();
  const toRules = (
    <Button component={Link} to="/books?tab=rules" variant="default">
      {title}
    </Button>
  );
  return (
    <Panel title={texts.books.unnumbered} aside={toRules}>
      <Text size="sm" className="quiet" px="var(--edge)" pb="md">
        {texts.books.unnumberedHow}
      </Text>
      <Rows
        items={accounts}
        columns={['account', 'merchant', 'product']}
        cell={(name, { kind }) => (name === 'account' ? word(String(kind)) : undefined)}
      />
    </Panel>
  );
}

type TablesProps = {
  of: Report;
  formats: Formats;
  figures: (typeof reports)[number]['figures'];
  given: Filters;
};

function Tables({ of, formats, figures, given }: TablesProps) {
  const { tables, state, zone, closingHash, startsAt, endsAt } = of;
  const texts = useTexts();
  const { kind } = useWords();
  const shown = tables.filter(({ rows }) => rows.length > 0);
  return (
    <>
      <Group gap="xs">
        <State name={state} />
        <span className="quiet">
          {texts.books.sign} · {zone}
          {closingHash && ' · '}
          {closingHash && <Copyable text={closingHash} shown={`${closingHash.slice(0, 12)}…`} />}
        </span>
      </Group>
      {shown.length === 0 && (
        <Panel>
          <Empty text={texts.books.noRows} />
        </Panel>
      )}
      {shown.some((table) => columnsOf(table, formats).length < namedOf(table, formats).length) && (
        <Text size="sm" className="quiet">
          {texts.books.leftOut}
        </Text>
      )}
      {shown.map((table) => (
        <Panel
          key={`${table.section} ${table.currency}`}
          title={[table.section && kind(table.section, 'section'), table.currency, table.number]
            .filter(Boolean)
            .join(' · ')}
        >
          <Rows
            items={itemsOf(table, formats)}
            columns={columnsOf(table, formats)}
            narrow={narrowOf(table, formats)}
            figures={figures[table.section ?? '']}
            around={{ ...given, startsAt, endsAt, currency: table.currency }}
            cell={(name, item) => {
              const text = item[name];
              if (typeof text !== 'string') return undefined;
              if (name === 'days') return text.replace('-', '–');
              return isWord(formats[name], text) ? kind(text, name) : undefined;
            }}
          />
        </Panel>
      ))}
    </>
  );
}

const isWord = (format: string | undefined, text: string) =>
  format === 'word' || format === 'scope' || text === 'total' || text === 'later';
const isNumber = (format: string | undefined) => /^(count|number|percent)$/.test(format ?? '');
const COLUMNS_MAX = 9;

const isZero = (cell: Cell | undefined) =>
  cell === null || cell === '' || Number(typeof cell === 'object' ? cell.amount : cell) === 0;

/** An id is left out: the next column names what it is of. */
const namedOf = ({ columns }: Pick<Table, 'columns'>, formats: Formats) =>
  columns.filter((name) => formats[name] !== 'id');

/** A wide table leaves out columns without movements, and a name that is the same in each row. */
function columnsOf({ columns, rows }: Table, formats: Formats): string[] {
  const named = namedOf({ columns }, formats);
  if (named.length <= COLUMNS_MAX) return named;
  return named.filter((name) => {
    const cells = rows.map((row) => row[name]);
    if (name === 'merchant') return new Set(cells).size > 1;
    return /^(opening|closing|net)$/.test(name) || !cells.every(isZero);
  });
}

/** A narrow screen has what a row is of, and the amount at its end. */
function narrowOf(table: Table, formats: Formats): string[] | undefined {
  const columns = columnsOf(table, formats);
  const amount = columns.findLast((name) => formats[name] === 'money');
  return amount === undefined ? undefined : [...columns.slice(0, 2), amount];
}

/** Counts line up like amounts. */
const itemsOf = (table: Table, formats: Formats): Item[] =>
  table.rows.map((row) => {
    const cellOf = (name: string, cell: Cell) =>
      isNumber(formats[name]) && typeof cell === 'string' && cell !== '' ? { amount: cell } : cell;
    return Object.fromEntries(Object.entries(row).map(([name, cell]) => [name, cellOf(name, cell)]));
  });

/** How a workbook has the columns that are no texts. */
const KINDS: Readonly<Record<string, Kind>> = {
  money: 'money',
  count: 'number',
  percent: 'number',
  time: 'any',
};

function Exports({ of, formats }: { of: Report; formats: Formats }) {
  const texts = useTexts().list;
  const { label, kind } = useWords();
  const whenLoaded = useWhenLoaded();
  const columns = [...new Set(of.tables.flatMap((table) => ['section', 'currency', ...table.columns]))];
  const items = of.tables.flatMap((table) =>
    table.rows.map((row) => ({ ...flat(row), section: table.section ?? '', currency: table.currency })),
  );
  const file = `${of.report}-${of.from}-${of.to}`;
  const wordOf = (name: string, text: unknown) => {
    if (typeof text !== 'string') return undefined;
    return name === 'section' || isWord(formats[name], text) ? kind(text, name) : undefined;
  };
  const kindOf = (name: string) => KINDS[formats[name] ?? ''] ?? 'text';
  const said = { label, kindOf, wordOf };
  const xlsx = async () => (await loadXlsx()).saveXlsx(`${file}.xlsx`, columns, items, said);
  return (
    <Menu>
      <Menu.Target>
        <Button variant="default">
          {texts.exportCsv} ({items.length})
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => saveCsv(`${file}.csv`, columns, items)}>CSV</Menu.Item>
        <Menu.Item onClick={() => whenLoaded(xlsx, () => {})}>XLSX</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

const flat = (row: Item): Item =>
  Object.fromEntries(
    Object.entries(row).map(([name, cell]) => [
      name,
      typeof cell === 'object' && cell !== null ? (cell as { amount: string }).amount : cell,
    ]),
  );
