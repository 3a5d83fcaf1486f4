import { Alert, Button, FileInput, Group, Input, Select, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import type { Answer, Listed } from '../answers.ts';
import { type Fault, send, toBase64 } from '../api.ts';
import { figuresIn } from '../figures.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Input as Given } from '../ui/act.ts';
import { Actions } from '../ui/actions.tsx';
import { useFilters } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { isWorkbook } from '../ui/csv-table.ts';
import { Dialog } from '../ui/dialog.tsx';
import { Figure } from '../ui/figure.tsx';
import { useFormat } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import type { Item } from '../ui/item.ts';
import { AGAIN_MS, useItems } from '../ui/items.ts';
import { List, Rows } from '../ui/list.tsx';
import type { ListProps } from '../ui/lists.tsx';
import { PageHead, PageTabs, useTab } from '../ui/page.tsx';
import { Empty, FaultText, Panel, Problem, Stat, submits } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { Value } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';
import { guessColumns } from './bank-columns.ts';
import { Matching } from './bank-match.tsx';
import { useMatchTexts } from './bank-match-texts.ts';

type Match = Answer<'bank.match'>;

type Tab = Pick<ListProps, 'of' | 'columns' | 'narrow' | 'cell'> & {
  readonly key: 'entries' | 'movements' | 'statements' | 'accounts';
  readonly empty: 'noEntries' | 'noMovements' | 'noAccounts';
};

const TABS: readonly Tab[] = [
  {
    key: 'entries',
    of: 'bank.entries',
    columns: ['bookedOn', 'account', 'description', 'reference', 'movements', 'matched', 'amount'],
    narrow: ['bookedOn', 'description', 'amount'],
    cell: movementsCell,
    empty: 'noEntries',
  },
  {
    key: 'movements',
    of: 'bank.movements',
    columns: ['day', 'kind', 'reference', 'bankReference', 'matched', 'amount'],
    narrow: ['day', 'kind', 'amount'],
    empty: 'noMovements',
  },
  {
    key: 'statements',
    of: 'bank.statements',
    columns: ['closingOn', 'account', 'entries', 'importedBy', 'opening', 'gap', 'missing', 'closing'],
    narrow: ['closingOn', 'entries', 'gap', 'missing', 'closing'],
    empty: 'noEntries',
  },
  {
    key: 'accounts',
    of: 'bank.accounts',
    narrow: ['name', 'currency', 'own'],
    empty: 'noAccounts',
  },
];

/** Compares the bank account with the books: imported statements, and matches. */
export function Screen() {
  const { bank: texts, nav } = useTexts();
  const { tab: _tab, ...search } = useFilters();
  const match = { key: 'match', label: useMatchTexts().tab, body: <Matching /> };
  const tab = useTab([...TABS.map(({ key }) => key), match.key]);
  const [isImporting, setImporting] = useState(false);
  const [found, setFound] = useState<Match>();
  const { operations } = useApp();
  const tabs = TABS.map(({ key, empty, ...list }) => ({
    key,
    label: texts[key],
    body: (
      <List
        {...list}
        search={search}
        empty={<Empty icon={<Icon name="bank" size={26} />} text={texts[empty]} />}
        actions={unmatch}
      />
    ),
  }));
  return (
    <>
      <PageHead title={nav.bank} note={texts.lead}>
        <BankImport isOpen={isImporting} setOpen={setImporting} />
        <Actions
          acts={[
            { name: 'bank.match', onDone: (answer) => setFound(answer as Match) },
            { name: 'bank.account' },
            { name: 'bank.mapping' },
          ]}
        />
        <Same name={tab === match.key ? 'bank.match-by-hand' : `bank.${tab}`} given={search} />
      </PageHead>
      <Stack>
        {found && found.payouts.length > 0 && (
          <Panel title={texts.payouts}>
            <Rows
              items={found.payouts}
              columns={['bookedOn', 'merchant', 'number', 'bankReference', 'amount']}
              narrow={['merchant', 'number', 'amount']}
              figures={figuresIn(operations?.get('bank.match')?.figures, 'payouts')}
              actions={pay}
            />
          </Panel>
        )}
        <Open />
        <PageTabs tabs={[...tabs.slice(0, 1), match, ...tabs.slice(1)]} />
      </Stack>
    </>
  );
}

/** What of the bank's entries has no match yet, until nothing is left. */
function Open() {
  const { bank: texts } = useTexts();
  const format = useFormat();
  const figures = useApp().operations?.get('bank.open')?.figures;
  const accounts = useItems<Item>('/bank/accounts');
  const items = useItems<Listed<'bank.open'>>('/bank/open', { refetchMs: AGAIN_MS });
  if (!items || !accounts || accounts.length === 0) return null;
  if (items.length === 0) return <Alert color="teal">{texts.allMatched}</Alert>;
  return (
    <div className="stats">
      {items.map(({ account, currency, entries, openAmount }) => (
        <Stat
          key={account}
          label={texts.open(account)}
          to="/bank?tab=match"
          note={texts.openEntries(entries)}
        >
          <Figure of={figures?.['items.openAmount']} value={openAmount} around={[{ account }]}>
            {format.moved(openAmount, currency)}
          </Figure>
        </Stat>
      ))}
    </div>
  );
}

/** The movements that an entry is matched with: together they are what is matched of it. */
function movementsCell(name: string, { movements, currency }: Item) {
  if (name !== 'movements') return undefined;
  return <Movements of={movements as Listed<'bank.entries'>['movements']} currency={String(currency)} />;
}

type MovementsProps = { of: Listed<'bank.entries'>['movements']; currency: string };

function Movements({ of, currency }: MovementsProps) {
  const { kind } = useWords();
  const figures = useApp().operations?.get('bank.entries')?.figures;
  if (of.length === 0) return <span className="quiet">–</span>;
  return of.map((each) => (
    <div key={each.transactionId}>
      {kind(each.kind)}{' '}
      <Value
        name="amount"
        value={each.amount}
        currency={currency}
        figure={figures?.['items.movements.amount']}
        around={[each]}
      />
    </div>
  ));
}

/** Books a payout that the bank made. */
function pay({ settlement: id, bankReference, bookedOn: valueDate }: Item) {
  const given = { id, bankReference, valueDate };
  return <Actions of={String(id)} acts={[{ name: 'settlement.pay', given }]} />;
}

/** Ends the matches of an entry or a movement that has some. */
function unmatch({ id, matched }: Item) {
  const acts = [Number(matched) !== 0 && { name: 'bank.unmatch', given: { id: String(id) } }];
  return <Actions shown={0} of={String(id)} acts={acts} />;
}

type Named = { readonly name: string };
type Imported = Answer<'bank.import'>;
/** A longer table is not read, and takes long to draw. */
const SHOWN_MAX = 200;
type Props = { isOpen: boolean; setOpen(isOpen: boolean): void };

/** Imports a statement of the bank, as a whole or not at all, after a preview. */
function BankImport({ isOpen, setOpen }: Props) {
  const { offers } = useApp();
  const { action } = useWords();
  if (!offers('bank.import')) return null;
  const label = action('bank.import');
  return (
    <>
      <Button onClick={() => setOpen(true)}>{label}</Button>
      <Dialog opened={isOpen} onClose={() => setOpen(false)} title={label} size="xl">
        {isOpen && <Form close={() => setOpen(false)} />}
      </Dialog>
    </>
  );
}

function Form({ close }: { close(): void }) {
  const texts = useTexts();
  const { label, action } = useWords();
  const client = useQueryClient();
  const [chosen, setChosen] = useState<Record<string, string | null>>({ format: 'camt053' });
  const [columns, setColumns] = useState<Given>();
  const [file, setFile] = useState<File | null>(null);
  const [isZipped, setWorkbook] = useState(false);
  const [seen, setSeen] = useState<Imported>();
  const { operations } = useApp();
  const formats = operations?.get('bank.import')?.fields.find(({ name }) => name === 'format')?.options ?? [];
  const accounts = useItems<Named>('/bank/accounts')?.map(({ name }) => name);
  const mappings = useItems<Named>('/bank/mappings')?.map(({ name }) => name);
  const choices = { account: accounts ?? [], format: [...formats], mapping: mappings ?? [] };
  // Of one, there is nothing to choose.
  const only = (names: readonly string[] | undefined) => (names?.length === 1 ? (names[0] ?? null) : null);
  const values = { account: only(accounts), mapping: only(mappings), ...chosen };
  const isCsv = chosen['format'] === 'csv';
  const choose = (changed: Record<string, string | null>) => {
    setChosen((before) => ({ ...before, ...changed }));
    setSeen(undefined);
  };
  // Each preview has a key of its own, so an import that is sent twice happens once.
  const key = useRef('');
  const { mutate, error, isPending, reset } = useMutation({
    mutationFn: async (dryRun: boolean) => {
      if (!file || isZipped) return;
      const bytes = new Uint8Array(await file.arrayBuffer());
      const given = Object.fromEntries(
        Object.entries(values).filter(([name, value]) => value && (name !== 'mapping' || isCsv)),
      );
      const body = { ...given, file: toBase64(bytes), dryRun };
      if (dryRun) key.current = crypto.randomUUID();
      const answer = await send<Imported>('POST', '/bank/import', {
        body,
        ...(!dryRun && { idempotencyKey: key.current }),
      });
      if (dryRun || !answer.ok) return setSeen(answer);
      await client.invalidateQueries();
      close();
    },
  });
  if (accounts?.length === 0)
    return <Empty text={texts.bank.noAccounts} action={<Actions acts={[{ name: 'bank.account' }]} />} />;
  return (
    <form onSubmit={submits(() => mutate(!seen?.ok))}>
      <Stack>
        {(['account', 'format', 'mapping'] as const).map((name) =>
          name === 'mapping' && !isCsv ? null : (
            <Select
              key={name}
              label={label(name)}
              required
              data={choices[name]}
              value={(values as typeof chosen)[name] ?? null}
              error={name === 'mapping' && mappings?.length === 0 && texts.bank.noMappings}
              onChange={(value) => choose({ [name]: value })}
            />
          ),
        )}
        <FileInput
          label={label('file')}
          required
          // At first in a dialog, and after the first account was added.
          data-autofocus
          autoFocus
          value={file}
          error={isZipped && texts.portal.notCsv}
          placeholder={texts.bank.chooseFile}
          leftSection={<Icon name="audit" />}
          onChange={async (given) => {
            setFile(given);
            setSeen(undefined);
            reset();
            setColumns(undefined);
            const bytes = new Uint8Array((await given?.arrayBuffer()) ?? []);
            setWorkbook(isWorkbook(bytes));
            if (given === null || isWorkbook(bytes)) return;
            const format = /^\W*</.test(new TextDecoder().decode(bytes.slice(0, 20))) ? 'camt053' : 'csv';
            choose({ format });
            if (format === 'csv') setColumns(guessColumns(bytes));
          }}
        />
        {isCsv && columns && (
          <Input.Wrapper description={texts.bank.guessed}>
            <Group mt={8}>
              <Actions
                acts={[
                  {
                    name: 'bank.mapping',
                    initial: { name: values.account ?? undefined, ...columns },
                    onDone: ({ name }) => choose({ mapping: String(name) }),
                  },
                ]}
              />
            </Group>
          </Input.Wrapper>
        )}
        {seen && <Preview of={seen} />}
        {error && <Problem error={error} />}
        <Group justify="flex-end" gap={8}>
          <Button variant="default" size="sm" onClick={close}>
            {texts.action.cancel}
          </Button>
          <Button type="submit" size="sm" loading={isPending}>
            {seen?.ok ? action('bank.import') : texts.bulk.preview}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** What the file contains: its errors, or what to look at and its entries. */
function Preview({ of: { ok, currency, entries, errors, notes } }: { of: Imported }) {
  const texts = useTexts();
  const figures = useApp().operations?.get('bank.import')?.figures;
  return (
    <>
      <Alert color={ok ? 'teal' : 'red'} variant="light">
        {ok ? texts.bank.readable(entries.length) : texts.bank.unreadable}
      </Alert>
      {[errors, notes].map((some, index) =>
        some.length === 0 ? null : (
          <Rows
            key={index === 0 ? 'errors' : 'notes'}
            items={some.slice(0, SHOWN_MAX)}
            columns={['line', 'field', 'message']}
            cell={(name, item) => (name === 'message' ? <FaultText of={item as Item & Fault} /> : undefined)}
          />
        ),
      )}
      {ok && entries.length > 0 && (
        <Rows
          items={entries.slice(0, SHOWN_MAX)}
          columns={['day', 'description', 'reference', 'amount']}
          narrow={['day', 'description', 'amount']}
          currency={currency}
          figures={figuresIn(figures, 'entries')}
        />
      )}
      {ok && entries.length > SHOWN_MAX && (
        <Text size="sm" className="quiet">
          {texts.bank.more(entries.length - SHOWN_MAX)}
        </Text>
      )}
    </>
  );
}
