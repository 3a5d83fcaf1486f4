import { Button, Stack, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import type { Answer } from '../answers.ts';
import { figuresIn } from '../figures.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useFilters, useParam } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { Figure } from '../ui/figure.tsx';
import { useFormat } from '../ui/format.ts';
import type { Item } from '../ui/item.ts';
import { List, Rows } from '../ui/list.tsx';
import { shownAs } from '../ui/lists.tsx';
import { PageHead } from '../ui/page.tsx';
import { Empty, Panel, Stat } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { Fields, Value } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';

export function Screen() {
  const texts = useTexts();
  const navigate = useNavigate();
  const { door, offers } = useApp();
  const search = useFilters();
  const openDraft = ({ items = [] }: { items?: readonly Item[] }) => {
    if (items.length === 1) void navigate({ to: `/settlements/${items[0]?.['id']}` });
  };
  const draft = { name: 'settlement.draft', onDone: openDraft };
  return (
    <>
      <PageHead
        title={texts.nav.settlements}
        primary
        acts={[draft, { name: 'settlement.file', given: { settlements: undefined, again: undefined } }]}
        of="settlement.list"
        given={search}
      />
      <Stack>
        <List
          of="settlement.list"
          search={search}
          narrow={['number', 'state', 'payable']}
          {...(door === 'operator' && { cell: numberCell })}
          bulk={
            offers('settlement.file')
              ? (items) => {
                  const given = {
                    settlements: items.map(({ id }) => String(id)),
                    due: undefined,
                    again: undefined,
                  };
                  return <Actions acts={[{ name: 'settlement.file', given }]} />;
                }
              : undefined
          }
          empty={<Empty text={texts.empty[door === 'operator' ? 'settlements' : 'statements']} />}
        />
        {offers('settlement.files') && (
          <List
            of="settlement.files"
            title={texts.settlement.files}
            columns={['madeAt', 'format', 'settlements', 'madeBy', 'again', 'sha256']}
            empty={<Empty text={texts.empty.files} />}
          />
        )}
      </Stack>
    </>
  );
}

/** Where there is no room for a column of merchants, the number is above the name. */
function numberCell(name: string, { number, merchant, ...item }: Item) {
  if (name !== 'number') return shownAs('settlement.list').cell?.(name, item);
  return (
    <>
      <Value name="number" value={number} />
      <small className="quiet narrow-only">{String(merchant)}</small>
    </>
  );
}

type Settlement = Answer<'settlement.show'>;

/** The fields that the head of the page and its figures show already. */
const IN_HEAD = [
  'id',
  'merchantId',
  'merchant',
  'state',
  'number',
  'currency',
  'firstDay',
  'lastDay',
  'startsAt',
  'endsAt',
  'carried',
  'closing',
  'outstanding',
  'payable',
];

const RATES = ['commission', 'base', 'fee', 'vat', 'feeVat'];

/** The answer to a dispute, or the button for it. */
const answerCell = (name: string, { id, state }: Item) =>
  name === 'answer' && state === 'OPEN' ? (
    <Actions acts={[{ name: 'settlement.answer', given: { id: String(id) } }]} />
  ) : undefined;

/** The parts of a statement, each of which is a table. */
function listsOf({ steps, rates, lines, payouts, earlier, disputes }: Settlement) {
  return [
    {
      key: 'steps',
      items: steps.filter(({ kind, amount }) => amount !== 0 || kind === 'PAYABLE'),
      columns: ['kind', 'amount'],
    },
    { key: 'rates', items: rates, columns: RATES, narrow: RATES },
    {
      key: 'lines',
      items: lines,
      columns: ['line', 'kind', 'product', 'rows', 'amount'],
      narrow: ['line', 'kind', 'product', 'amount'],
    },
    {
      key: 'payouts',
      items: payouts,
      columns: ['kind', 'valueDate', 'bankReference', 'amount'],
      narrow: ['kind', 'valueDate', 'amount'],
    },
    {
      key: 'earlier',
      items: earlier,
      columns: ['number', 'payable', 'paid', 'outstanding'],
      narrow: ['number', 'payable', 'outstanding'],
    },
    {
      key: 'disputes',
      items: disputes,
      columns: ['line', 'comment', 'state', 'answer'],
      narrow: ['comment', 'state', 'answer'],
      cell: answerCell,
    },
  ] as const;
}

/** The amount that a merchant is paid for a period, and the reasons. */
export function Thing() {
  const texts = useTexts();
  const { door, offers, operations } = useApp();
  const { label } = useWords();
  const format = useFormat();
  const id = useParam('id');
  const { thing, instead } = useThing<Settlement>(`/settlements/${id}`);
  if (!thing) return instead;
  const { state, currency } = thing;
  const figures = operations?.get('settlement.show')?.figures;
  const given = { id };
  const money = (amount: number) => format.money(amount, currency);
  const effect = `${thing.merchant}: ${money(thing.payable)}`;
  const isPayable = state === 'APPROVED' || state === 'RETURNED';
  const isAgain = thing.fileId !== null;
  const inFile = { settlements: [id], due: undefined, ...(!isAgain && { again: undefined }) };
  return (
    <>
      <PageHead
        back="settlements"
        title={thing.number ?? texts.settlement.draft}
        state={state === 'DRAFT' ? undefined : state}
        note={`${thing.merchant} · ${format.day(thing.firstDay)} – ${format.day(thing.lastDay)}`}
        primary={door === 'operator'}
        acts={[
          state === 'DRAFT' && { name: 'settlement.approve', given, effect },
          isPayable && { name: 'settlement.pay', given, effect },
          isPayable && { name: 'settlement.file', given: inFile, effect },
          state === 'PAID' && { name: 'settlement.returned', given, effect, isDanger: true },
          // The operator answers disputes.
          door === 'portal' && state !== 'DRAFT' && { name: 'settlement.dispute', given },
        ]}
        of="settlement.show"
        given={given}
      >
        {state !== 'DRAFT' &&
          offers('settlement.document') &&
          (['pdf', 'csv'] as const).map((type) => (
            <Button
              key={type}
              variant="default"
              component="a"
              href={`/${door}/v1/settlements/${id}/document?format=${type}`}
            >
              {texts.settlement.document[type]}
            </Button>
          ))}
      </PageHead>
      <Stack gap="lg">
        <div className="stats">
          {(['carried', 'closing'] as const).map((name) => (
            <Stat key={name} label={label(name)}>
              <Figure of={figures?.[name]} value={thing[name]} around={[thing]}>
                {money(thing[name])}
              </Figure>
            </Stat>
          ))}
          {thing.outstanding !== 0 && (
            <Stat label={texts.settlement.outstanding}>
              <Figure of={figures?.['outstanding']} value={-thing.outstanding} around={[thing]}>
                {money(-thing.outstanding)}
              </Figure>
            </Stat>
          )}
          <Stat label={texts.settlement.payable}>
            <Figure of={figures?.['payable']} value={thing.payable} around={[thing]}>
              {money(thing.payable)}
            </Figure>
          </Stat>
        </div>
        <div className="two">
          <Stack>
            {listsOf(thing)
              .filter(({ items }) => items.length > 0)
              .map(({ key, ...list }) => (
                <Panel key={key} title={texts.settlement[key]}>
                  <Rows currency={currency} figures={figuresIn(figures, key)} around={thing} {...list} />
                </Panel>
              ))}
          </Stack>
          <Stack>
            {state !== 'DRAFT' && offers('settlement.proof') && (
              <Panel title={texts.settlement.proof} padded>
                <Text size="sm" mb="sm">
                  {texts.settlement.proofSays}
                </Text>
                <Button variant="default" component="a" href={`/${door}/v1/settlements/${id}/proof`}>
                  {texts.settlement.proof}
                </Button>
              </Panel>
            )}
            <Panel title={texts.details} padded>
              <Fields of={thing} without={IN_HEAD} />
            </Panel>
          </Stack>
        </div>
      </Stack>
    </>
  );
}
