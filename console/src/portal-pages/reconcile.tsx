import { Alert, Button, FileButton, Group, Select, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { get, type Page } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { type Item, Rows } from '../ui/list.tsx';
import { Head, Panel, Problem } from '../ui/parts.tsx';
import { type Booked, type Compared, compare, readAmount, readCsv } from './csv.ts';

type File = ReturnType<typeof readCsv>;

/** Compares the CSV of a till with the merchant's transactions. The file stays in the browser. */
export function Screen() {
  const texts = useTexts().portal;
  const [file, setFile] = useState<File>();
  const [columns, setColumns] = useState<{ reference: string | null; amount: string | null }>({
    reference: null,
    amount: null,
  });
  const [result, setResult] = useState<Compared>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);

  const choose = async (chosen: globalThis.File | null) => {
    if (!chosen) return;
    const bytes = new Uint8Array(await chosen.arrayBuffer());
    let text: string;
    try {
      text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    } catch {
      text = new TextDecoder('windows-1252').decode(bytes);
    }
    const read = readCsv(text);
    const named = (pattern: RegExp) => read.columns.find((column) => pattern.test(column)) ?? null;
    setFile(read);
    setResult(undefined);
    setColumns({ reference: named(/ref|beleg|order|bon/i), amount: named(/amount|betrag|total|sum/i) });
  };
  const run = async () => {
    const { reference, amount } = columns;
    if (!file || !reference || !amount) return;
    setBusy(true);
    setError(undefined);
    try {
      const till = file.rows
        .filter((row) => row[reference])
        .map((row) => ({ reference: row[reference] ?? '', amount: readAmount(row[amount] ?? '') }));
      setResult(compare(till, await readAll()));
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Head title={texts.reconcileTitle} note={texts.reconcileLead} />
      <Stack>
        <Panel>
          <Group p="md" align="flex-end">
            <FileButton accept=".csv,text/csv,text/plain" onChange={choose}>
              {(props) => (
                <Button variant="default" {...props}>
                  {texts.chooseFile}
                </Button>
              )}
            </FileButton>
            {file && (
              <>
                <Select
                  label={texts.referenceColumn}
                  data={[...file.columns]}
                  value={columns.reference}
                  onChange={(reference) => setColumns({ ...columns, reference })}
                />
                <Select
                  label={texts.amountColumn}
                  data={[...file.columns]}
                  value={columns.amount}
                  onChange={(amount) => setColumns({ ...columns, amount })}
                />
                <Button onClick={run} loading={isBusy} disabled={!columns.reference || !columns.amount}>
                  {texts.reconcileTitle}
                </Button>
              </>
            )}
          </Group>
        </Panel>
        {error !== undefined && <Problem error={error} />}
        {result && <Result of={result} />}
      </Stack>
    </>
  );
}

function Result({ of: { missingHere, missingThere, differing } }: { of: Compared }) {
  const texts = useTexts().portal;
  if (missingHere.length + missingThere.length + differing.length === 0)
    return <Alert color="teal">{texts.agree}</Alert>;
  const lists = [
    { title: texts.missingHere, rows: missingHere, columns: ['reference', 'amount'] },
    { title: texts.missingThere, rows: missingThere, columns: ['reference', 'amount'] },
    { title: texts.differs, rows: differing, columns: ['reference', 'amount', 'inScrip'] },
  ];
  return lists
    .filter(({ rows }) => rows.length > 0)
    .map(({ title, rows, columns }) => (
      <Panel key={title} title={`${title} (${rows.length})`}>
        {rows.length === 0 ? <Text /> : <Rows items={rows as unknown as Item[]} columns={columns} />}
      </Panel>
    ));
}

const PAGES_MAX = 100;

/** The redemptions that are in force, under the references of the till. */
async function readAll(): Promise<Booked[]> {
  const found: Booked[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < PAGES_MAX; page++) {
    const { items, nextCursor }: Page<Item> = await get('/transactions', {
      limit: 200,
      cursor: cursor ?? undefined,
    });
    for (const { kind, reference, amount } of items)
      if (kind === 'REDEMPTION' && typeof reference === 'string')
        found.push({ reference, amount: Number(amount) });
    if (nextCursor === null) break;
    cursor = nextCursor;
  }
  return found;
}
