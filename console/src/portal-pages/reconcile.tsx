import { Alert, Button, FileButton, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { Listed } from '../answers.ts';
import { readPages } from '../api.ts';
import { UNDECLARED } from '../figures.ts';
import { useLanguage, useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { saveCsv } from '../ui/csv.ts';
import { AMOUNTS, columnLike, decode, readAmounts, readCsv } from '../ui/csv-table.ts';
import { useFormat } from '../ui/format.ts';
import { Rows } from '../ui/list.tsx';
import { Head, Panel, Problem } from '../ui/parts.tsx';
import { useWords } from '../ui/words.ts';
import { type Booked, type Compared, compare } from './compare.ts';
import { useReconcileTexts } from './reconcile-texts.ts';

type Opened = ReturnType<typeof readCsv> & { readonly name: string };
/** The days whose transactions are compared, as typed. */
type Days = { readonly from?: string | undefined; readonly to?: string | undefined };
type Read = Booked & { readonly currency: string };
type Result = Compared & { readonly currency: string | undefined };
type Columns = { reference: string | null; amount: string | null };

/** Compares the CSV of a till with the merchant's transactions. The file stays in the browser. */
export function Screen() {
  const texts = useReconcileTexts();
  const { notCsv } = useTexts().portal;
  const { language } = useLanguage();
  const format = useFormat();
  const { label } = useWords();
  const [file, setFile] = useState<Opened>();
  const [columns, setColumns] = useState<Columns>({ reference: null, amount: null });
  const [days, setDays] = useState<Days>({});
  const [read, setRead] = useState(0);

  const { mutate: choose, error: unreadable } = useMutation({
    mutationFn: async (chosen: File | null) => {
      if (!chosen) return;
      reset();
      setFile(undefined);
      const text = decode(new Uint8Array(await chosen.arrayBuffer()));
      if (text === undefined) throw new Error(notCsv);
      const found = readCsv(text);
      if (found.columns.length < 2) throw new Error(texts.oneColumn);
      setFile({ ...found, name: chosen.name });
      setColumns({
        reference: columnLike(found.columns, /ref|beleg|order|bon/i) ?? null,
        amount: columnLike(found.columns, AMOUNTS) ?? null,
      });
    },
  });
  const {
    mutate: run,
    data: result,
    error,
    isPending,
    reset,
  } = useMutation({
    mutationFn: async (): Promise<Result | undefined> => {
      const { reference, amount } = columns;
      if (!file || !reference || !amount) return undefined;
      setRead(0);
      const named = file.rows.filter(({ of }) => of[reference]);
      const amounts = readAmounts(
        named.map(({ of }) => of[amount] ?? ''),
        language,
      );
      const till = named.map(({ of, line }, at) => {
        const read = amounts[at];
        if (read === undefined) throw new Error(texts.notAmount(format.number(line), of[amount] ?? ''));
        return { reference: of[reference] ?? '', amount: read };
      });
      const booked = await readAll(days, setRead);
      return { ...compare(till, booked), currency: currencyOf(booked) };
    },
  });
  const failure = unreadable ?? error;
  return (
    <>
      <Head title={texts.reconcileTitle} note={texts.reconcileLead} />
      <Stack>
        <Panel padded>
          <Group align="flex-end" gap={8}>
            <FileButton accept=".csv,.txt,text/csv,text/plain" onChange={choose}>
              {(props) => (
                <Button variant="default" size="sm" {...props}>
                  {file ? file.name : texts.chooseFile}
                </Button>
              )}
            </FileButton>
            {file && (
              <>
                {(['reference', 'amount'] as const).map((name) => (
                  <Select
                    key={name}
                    w={200}
                    label={name === 'reference' ? texts.referenceColumn : texts.amountColumn}
                    data={[...file.columns]}
                    value={columns[name]}
                    onChange={(value) => setColumns({ ...columns, [name]: value })}
                  />
                ))}
                {(['from', 'to'] as const).map((name) => (
                  <TextInput
                    key={name}
                    type="date"
                    size="sm"
                    label={label(name)}
                    value={days[name] ?? ''}
                    onChange={(event) => setDays({ ...days, [name]: event.currentTarget.value || undefined })}
                  />
                ))}
                <Button
                  size="sm"
                  onClick={() => run()}
                  loading={isPending}
                  disabled={!columns.reference || !columns.amount}
                >
                  {texts.compare}
                </Button>
              </>
            )}
          </Group>
          {file && (
            <Text size="sm" className="quiet" mt="xs">
              {texts.rowsRead(format.number(file.rows.length))}
              {isPending && read > 0 ? ` ${texts.transactionsRead(format.number(read))}` : ''}
            </Text>
          )}
        </Panel>
        {failure && <Problem error={failure} />}
        {result && <Differences of={result} />}
      </Stack>
    </>
  );
}

function Differences({ of: { agreeing, missingHere, missingThere, differing, currency } }: { of: Result }) {
  const texts = useReconcileTexts();
  const { exportCsv } = useTexts().list;
  const { inFile } = UNDECLARED;
  const booked = useApp().operations?.get('transaction.list')?.figures['items.amount'] ?? [];
  const lists = [
    { title: texts.missingHere, rows: missingHere, columns: ['reference', 'amount'], amount: inFile },
    { title: texts.missingThere, rows: missingThere, columns: ['reference', 'amount'], amount: booked },
    { title: texts.differs, rows: differing, columns: ['reference', 'amount', 'inScrip'], amount: inFile },
  ].filter(({ rows }) => rows.length > 0);
  return (
    <>
      <Alert color={lists.length === 0 ? 'teal' : 'orange'} variant="light">
        {lists.length === 0 ? texts.agree : texts.agreeing(agreeing)}
      </Alert>
      {lists.map(({ title, rows, columns, amount }) => (
        <Panel
          key={title}
          title={`${title} (${rows.length})`}
          aside={
            <Button variant="default" onClick={() => saveCsv('differences.csv', columns, [...rows])}>
              {exportCsv}
            </Button>
          }
        >
          <Rows items={rows} columns={columns} currency={currency} figures={{ amount, inScrip: booked }} />
        </Panel>
      ))}
    </>
  );
}

const READ_MAX = 50_000;

/** The currency of all of them; undefined if there are several. */
function currencyOf(booked: readonly Read[]): string | undefined {
  const [first, ...others] = new Set(booked.map(({ currency }) => currency));
  return others.length === 0 ? first : undefined;
}

/** The active redemptions of some days, under the references of the till. */
async function readAll(days: Days, show: (read: number) => void): Promise<Read[]> {
  const found: Read[] = [];
  let read = 0;
  for await (const items of readPages<Listed<'transaction.list'>>('/transactions', days)) {
    for (const { kind, reference, amount, currency, refundStatus } of items)
      if (kind === 'REDEMPTION' && refundStatus !== 'CANCELLED' && reference !== null)
        found.push({ reference: reference.replace(/^NEW-/, ''), amount, currency });
    read += items.length;
    show(read);
    if (read >= READ_MAX) break;
  }
  return found;
}
