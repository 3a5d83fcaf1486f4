import { useQuery } from '@tanstack/react-query';
import { useLocation, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useEffect } from 'react';
import { ApiProblem, get, type Page, send } from '../api.ts';
import { figuresIn } from '../figures.ts';
import { useTexts } from '../i18n/index.tsx';
import { type Guess, guess, isFourDigits, searched } from '../search.ts';
import { useFilters } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import type { Item } from '../ui/item.ts';
import { Rows } from '../ui/list.tsx';
import { shownAs } from '../ui/lists.tsx';
import { Busy, Empty, Head, Panel, Problem } from '../ui/parts.tsx';
import { pageOf } from '../ui/places.ts';

/**
 * The result of a search. A full code is never in the address or the history, and is sent in a body.
 */
export function Screen() {
  const texts = useTexts().search;
  const { text = '' } = useFilters();
  const { turn } = useLocation().state as { turn?: string };
  const code = text === '' ? searched.code : undefined;
  const navigate = useNavigate();
  const found = guess(text);
  const serialNumber = found?.kind === 'serial' ? found.text : undefined;
  // Only once for each serial number, since a <Navigate> navigates again at every render.
  useEffect(() => {
    if (serialNumber) void navigate({ to: `/vouchers/${serialNumber}`, replace: true });
  }, [serialNumber, navigate]);
  if (serialNumber) return <Busy />;
  if (found?.kind === 'code-with-pin') return <Answer note="" body={<Empty text={texts.isSecret} />} />;
  if (found?.kind === 'four-digits') return <Answer note="" body={<Empty text={texts.fourDigits} />} />;
  const wanted: Guess | undefined = code === undefined ? found : { kind: 'code', text: code };
  if (!wanted) return <Answer note="" body={<Empty text={texts.how} />} />;
  const note = code === undefined ? `${texts.kinds[wanted.kind]} ${text}` : texts.isCode;
  return <Answer note={note} body={<Found wanted={wanted} turn={turn} />} />;
}

function Answer({ note, body }: { note: string; body: ReactNode }) {
  const texts = useTexts().search;
  return (
    <>
      <Head title={texts.label} note={note} />
      {body}
    </>
  );
}

type FoundProps = { wanted: Guess; turn: string | undefined };

/** @param turn differs from search to search, also if both are for codes */
function Found({ wanted, turn }: FoundProps) {
  const texts = useTexts();
  const { operations } = useApp();
  const navigate = useNavigate();
  const { data, error, isFetching } = useQuery({
    // A code is never cached.
    queryKey: ['search', wanted.kind, wanted.kind === 'code' ? turn : wanted.text],
    gcTime: 0,
    staleTime: 0,
    retry: false,
    queryFn: () => look(wanted),
  });
  const found = Object.entries(data ?? {}) as [Noun, readonly Item[]][];
  const all = found.flatMap(([noun, items]) => items.map((item) => SHOWN[noun].to(item)));
  const only = !isFetching && all.length === 1 ? all[0] : undefined;
  useEffect(() => {
    if (only) void navigate({ to: only, replace: true });
  }, [only, navigate]);
  if (isFetching || only) return <Busy />;
  if (error) return <Problem error={error} />;
  if (all.length === 0)
    return (
      <Panel>
        <Empty text={isFourDigits(wanted.text) ? texts.search.fourDigits : texts.search.nothing} />
      </Panel>
    );
  return found
    .filter(([, items]) => items.length > 0)
    .map(([noun, items]) => (
      <Panel key={noun} title={noun === 'named' ? texts.search.kinds.reference : texts.nav[noun]}>
        <Rows
          items={items}
          figures={figuresIn(operations?.get(LISTS[noun])?.figures, 'items')}
          {...SHOWN[noun]}
        />
      </Panel>
    ));
}

/** The list that declares the figures of what was found. */
const LISTS: Readonly<Record<Noun, string>> = {
  vouchers: 'voucher.list',
  transactions: 'transaction.list',
  batches: 'batch.list',
  settlements: 'settlement.list',
  named: '',
};

const addressed = (list: 'voucher.list' | 'transaction.list' | 'batch.list' | 'settlement.list') => ({
  ...shownAs(list),
  to: pageOf(list) as (item: Item) => string,
});

/** How what was found is shown, and the page of each item. */
const SHOWN = {
  vouchers: addressed('voucher.list'),
  transactions: addressed('transaction.list'),
  batches: addressed('batch.list'),
  settlements: addressed('settlement.list'),
  named: {
    columns: ['operation', 'merchantId', 'serialNumber', 'transactionId'],
    to: ({ operation, transactionId }: Item) =>
      `/${operation === 'generate' ? 'batches' : 'transactions'}/${transactionId}`,
  },
};
type Noun = keyof typeof SHOWN;
type Results = { readonly [noun in Noun]?: readonly Item[] };

/** Asks for everything that the text could be. If a thing does not exist, its list is empty. */
async function look({ kind, text }: Guess): Promise<Results> {
  const found = async (path: string, body: object) => (await send<Page<Item>>('POST', path, { body })).items;
  const one = (item: Promise<Item>) => orNone(item.then((each) => [each]));
  if (kind === 'code') return { vouchers: await found('/vouchers/find', { code: text }) };
  if (kind === 'masked') return { vouchers: await found('/vouchers/find', { masked: text }) };
  if (kind === 'settlement')
    return { settlements: (await get<Page<Item>>('/settlements', { number: text })).items };
  if (kind === 'reference')
    return { named: await orNone(found('/transactions/search', { reference: text })) };
  const [vouchers, transactions, batches] = await Promise.all([
    orNone(found('/vouchers/find', { transactionId: text })),
    one(get<Item>(`/transactions/${text}`)),
    one(get<Item>(`/batches/${text}`)),
  ]);
  return { vouchers, transactions, batches };
}

/** @throws ApiProblem for anything but what was not found */
async function orNone(items: Promise<readonly Item[]>): Promise<readonly Item[]> {
  return items.catch((error: unknown) => {
    if (error instanceof ApiProblem && (error.status === 404 || error.status === 400)) return [];
    throw error;
  });
}
