import { Alert, Button, FileButton, Group, Select, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { get, type Page } from '../api.ts';
import { useLanguage, useTexts } from '../i18n/index.tsx';
import { decode, saveCsv } from '../ui/csv.ts';
import { useFormat } from '../ui/format.ts';
import { type Item, Rows } from '../ui/list.tsx';
import { Head, Panel, Problem } from '../ui/parts.tsx';
import { type Booked, type Compared, compare, readAmounts, readCsv } from './csv.ts';

type Opened = ReturnType<typeof readCsv> & { readonly name: string };
type Columns = { reference: string | null; amount: string | null };

/** Compares the CSV of a till with the merchant's transactions. The file stays in the browser. */
export function Screen() {
  const texts = useTexts().portal;
  const { language } = useLanguage();
  const format = useFormat();
  const [file, setFile] = useState<Opened>();
  const [columns, setColumns] = useState<Columns>({ reference: null, amount: null });
  const [result, setResult] = useState<Compared>();
  const [error, setError] = useState<unknown>();
  const [read, setRead] = useState<number>();

  const choose = async (chosen: File | null) => {
    if (!chosen) return;
    setResult(undefined);
    setError(undefined);
    setFile(undefined);
    const text = decode(new Uint8Array(await chosen.arrayBuffer()));
    if (text === undefined) return setError(new Error(texts.notCsv));
    const found = readCsv(text);
    if (found.columns.length < 2) return setError(new Error(texts.oneColumn));
    const named = (pattern: RegExp) => found.columns.find((column) => pattern.test(column)) ?? null;
    setFile({ ...found, name: chosen.name });
    setColumns({ reference: named(/ref|beleg|order|bon/i), amount: named(/amount|betrag|total|sum/i) });
  };
  const run = async () => {
    const { reference, amount } = columns;
    if (!file || !reference || !amount) return;
    setError(undefined);
    setResult(undefined);
    setRead(0);
    try {
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
      setResult(compare(till, await readAll(setRead)));
    } catch (caught) {
      setError(caught);
    } finally {
      setRead(undefined);
    }
  };
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
                <Button
                  size="sm"
                  onClick={run}
                  loading={read !== undefined}
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
              {read ? ` ${texts.transactionsRead(format.number(read))}` : ''}
            </Text>
          )}
        </Panel>
        {error !== undefined && <Problem error={error} />}
        {result && <Result of={result} />}
      </Stack>
    </>
  );
}

function Result({ of: { agreeing, missingHere, missingThere, differing } }: { of: Compared }) {
  const texts = useTexts();
  const lists = [
    { title: texts.portal.missingHere, rows: missingHere, columns: ['reference', 'amount'] },
    { title: texts.portal.missingThere, rows: missingThere, columns: ['reference', 'amount'] },
    { title: texts.portal.differs, rows: differing, columns: ['reference', 'amount', 'inScrip'] },
  ].filter(({ rows }) => rows.length > 0);
  return (
    <>
      <Alert color={lists.length === 0 ? 'teal' : 'orange'} variant="light">
        {lists.length === 0 ? texts.portal.agree : texts.portal.agreeing(agreeing)}
      </Alert>
      {lists.map(({ title, rows, columns }) => (
        <Panel
          key={title}
          title={`${title} (${rows.length})`}
          aside={
            <Button variant="default" onClick={() => saveCsv('differences.csv', columns, [...rows])}>
              {texts.list.exportCsv}
            </Button>
          }
        >
          <Rows items={rows.map((row, index) => ({ ...row, id: String(index) }))} columns={columns} />
        </Panel>
      ))}
    </>
  );
}

const PAGES_MAX = 250;

/** The active redemptions, under the references of the till. */
async function readAll(tell: (read: number) => void): Promise<Booked[]> {
  const found: Booked[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < PAGES_MAX; page++) {
    const { items, nextCursor }: Page<Item> = await get('/transactions', {
      limit: 200,
      cursor: cursor ?? undefined,
    });
    for (const { kind, reference, amount, refundStatus } of items)
      if (kind === 'REDEMPTION' && refundStatus !== 'CANCELLED' && typeof reference === 'string')
        found.push({ reference: reference.replace(/^NEW-/, ''), amount: Number(amount) });
    tell((page + 1) * 200);
    cursor = nextCursor;
    if (cursor === null) break;
  }
  return found;
}
