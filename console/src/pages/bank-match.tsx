import { Group, Stack, Text, UnstyledButton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Answer, Listed } from '../answers.ts';
import { send } from '../api.ts';
import { figuresIn, UNDECLARED } from '../figures.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { Figure } from '../ui/figure.tsx';
import { useFormat } from '../ui/format.ts';
import type { Item } from '../ui/item.ts';
import { AGAIN_MS, useItems } from '../ui/items.ts';
import { Rows } from '../ui/list.tsx';
import { Busy, Empty, Panel } from '../ui/parts.tsx';
import { useSelection } from '../ui/selection.ts';
import { useWords } from '../ui/words.ts';
import { useMatchTexts } from './bank-match-texts.ts';

type Entry = Listed<'bank.entries'>;
type Movement = Listed<'bank.movements'>;
type Open = Pick<Entry, 'amount' | 'matched' | 'currency'>;

const SHOWN_MAX = 200;
const query = { open: 'true', limit: SHOWN_MAX };
const options = { query, refetchMs: AGAIN_MS };

/** The pairs that the service would match or suggest: the movement of each entry. */
function useFits(): ReadonlyMap<string, string> {
  const { offers } = useApp();
  const { data } = useQuery({
    queryKey: ['items', 'bank.match'],
    queryFn: () => send<Answer<'bank.match'>>('POST', '/bank/match', { body: { dryRun: true } }),
    enabled: offers('bank.match'),
    retry: false,
  });
  return new Map(
    [...(data?.exact ?? []), ...(data?.suggested ?? [])].map((pair) => [pair.entry, pair.movement]),
  );
}

const leftOf = ({ amount, matched }: Open) => amount - matched;
const sumOf = (some: readonly Open[]) => some.reduce((sum, each) => sum + leftOf(each), 0);

/** Open entries of the bank beside open movements of the books: selected ones are matched. */
export function Matching() {
  const texts = useMatchTexts();
  const { bank } = useTexts();
  const { kind } = useWords();
  const format = useFormat();
  const { operations } = useApp();
  const entries = useItems<Entry>('/bank/entries', options);
  const movements = useItems<Movement>('/bank/movements', options);
  const fits = useFits();
  const left = useSelection(entries?.map(({ id }) => id) ?? []);
  const right = useSelection(movements?.map(({ transactionId }) => transactionId) ?? []);
  if (!entries || !movements) return <Busy />;
  const chosen = entries.filter(({ id }) => left.selected.includes(id));
  const paid = movements.filter(({ transactionId }) => right.selected.includes(transactionId));
  const clear = () => {
    left.clear();
    right.clear();
  };
  const choose = (entry: string, movement: string) => {
    clear();
    left.selection.toggle(entry);
    right.selection.toggle(movement);
  };
  /** A text with what is left of it, and the movement that fits it. */
  const described = (name: string, item: Item) => {
    if (name !== 'description') return undefined;
    const { id, description } = item as Entry;
    const fit = movements.find(({ transactionId }) => transactionId === fits.get(id));
    return (
      <>
        <bdi className="long">{description}</bdi>
        <Left of={item as Entry} />
        {fit && (
          <UnstyledButton
            className="quiet-link"
            fz="xs"
            display="block"
            onClick={() => choose(id, fit.transactionId)}
          >
            {`${texts.fits}: ${kind(fit.kind)} · ${format.day(fit.day)} · ${fit.reference ?? ''}`}
          </UnstyledButton>
        )}
      </>
    );
  };
  const referenced = (name: string, item: Item) =>
    name === 'reference' ? (
      <>
        <bdi className="long">{String(item['reference'] ?? '–')}</bdi>
        <Left of={item as Movement} />
      </>
    ) : undefined;
  const figuresOf = (name: string) => figuresIn(operations?.get(name)?.figures, 'items');
  return (
    <Stack>
      <Chosen entries={chosen} movements={paid} clear={clear} />
      <div className="two even">
        <Panel title={texts.entries}>
          {entries.length === 0 && <Empty text={bank.allMatched} />}
          {entries.length > 0 && (
            <Rows
              items={entries}
              columns={['bookedOn', 'description', 'amount']}
              cell={described}
              selection={left.selection}
              figures={figuresOf('bank.entries')}
            />
          )}
          <First of={entries} />
        </Panel>
        <Panel title={texts.movements}>
          {movements.length === 0 && <Empty text={bank.noMovements} />}
          {movements.length > 0 && (
            <Rows
              items={movements}
              columns={['day', 'kind', 'reference', 'amount']}
              narrow={['day', 'reference', 'amount']}
              cell={referenced}
              selection={right.selection}
              figures={figuresOf('bank.movements')}
            />
          )}
          <First of={movements} />
        </Panel>
      </div>
    </Stack>
  );
}

/** The open amount of an entry or a movement that is matched in part. */
function Left({ of }: { of: Open }) {
  const { left } = useMatchTexts();
  const format = useFormat();
  if (of.matched === 0) return null;
  return (
    <small className="quiet">
      {` ${left}: `}
      <Figure of={UNDECLARED.difference} value={leftOf(of)} around={[]}>
        {format.money(leftOf(of), of.currency)}
      </Figure>
    </small>
  );
}

function First({ of }: { of: readonly unknown[] }) {
  const { first } = useMatchTexts();
  if (of.length < SHOWN_MAX) return null;
  return (
    <Text size="sm" className="quiet" p="sm">
      {first(SHOWN_MAX)}
    </Text>
  );
}

type ChosenProps = { entries: readonly Entry[]; movements: readonly Movement[]; clear(): void };

/** What is selected on both sides, and the button that matches it once the sums agree. */
function Chosen({ entries, movements, clear }: ChosenProps) {
  const texts = useMatchTexts();
  const format = useFormat();
  const [{ currency } = { currency: '' }] = [...entries, ...movements];
  const isOne = [...entries, ...movements].every((each) => each.currency === currency);
  const money = (some: readonly Open[]) => `${format.money(sumOf(some), currency)}`;
  const difference = sumOf(entries) - sumOf(movements);
  const areSeveral = entries.length > 1 && movements.length > 1;
  if (entries.length === 0 && movements.length === 0) return <Text className="quiet">{texts.lead}</Text>;
  const sides = texts.sides(money(entries), money(movements));
  const isReady = isOne && !areSeveral && difference === 0 && entries.length > 0 && movements.length > 0;
  return (
    <Group role="status" gap="md">
      {isOne && <b className="number">{sides}</b>}
      {areSeveral && texts.several}
      {isOne && difference !== 0 && <span>{texts.differs(`${format.moved(difference, currency)}`)}</span>}
      {isReady && (
        <Actions
          primary
          acts={[
            {
              name: 'bank.match-by-hand',
              given: {
                entries: entries.map(({ id }) => id),
                movements: movements.map(({ transactionId }) => transactionId),
              },
              effect: sides,
              onDone: clear,
            },
          ]}
        />
      )}
    </Group>
  );
}
