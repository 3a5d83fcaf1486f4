import { Select, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useLocation, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useEffect } from 'react';
import { ApiProblem, get, type Page, send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { type Guess, guess, searched } from '../search.ts';
import { useChangeFilters, useFilters } from '../ui/address.ts';
import { type Item, pageOf, Rows } from '../ui/list.tsx';
import { shownAs } from '../ui/lists.tsx';
import { useMerchants } from '../ui/names.ts';
import { Busy, Empty, Head, Panel, Problem } from '../ui/parts.tsx';

/**
 * The result of a search. A full code is never in the address or the history, and is sent in a body.
 */
export function Screen() {
  const texts = useTexts().search;
  const { text = '', merchantId } = useFilters();
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
  const wanted: Guess | undefined = code === undefined ? found : { kind: 'code', text: code };
  if (!wanted) return <Answer note="" body={<Empty text={texts.how} />} />;
  const note = code === undefined ? `${texts.kinds[wanted.kind]} ${text}` : texts.isCode;
  return (
    <Answer
      note={note}
      body={
        <Stack>
          {wanted.kind === 'reference' && <ChooseMerchant chosen={merchantId} text={text} />}
          {(wanted.kind !== 'reference' || merchantId) && (
            <Found wanted={wanted} merchantId={merchantId} turn={turn} />
          )}
        </Stack>
      }
    />
  );
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

function ChooseMerchant({ chosen, text }: { chosen: string | undefined; text: string }) {
  const texts = useTexts();
  const change = useChangeFilters();
  const { merchants } = useMerchants();
  return (
    <Panel padded>
      <Text size="sm" mb="xs">
        {texts.search.merchantNeeded}
      </Text>
      <Select
        w={320}
        maw="100%"
        searchable
        value={chosen ?? null}
        onChange={(merchantId) => change({ text, merchantId: merchantId ?? undefined })}
        aria-label={texts.nav.merchants}
        data={merchants.map(({ id, name }) => ({ value: id, label: `${name} (${id})` }))}
      />
    </Panel>
  );
}

type FoundProps = { wanted: Guess; merchantId: string | undefined; turn: string | undefined };

/** @param turn differs from search to search, also if both are for codes */
function Found({ wanted, merchantId, turn }: FoundProps) {
  const texts = useTexts();
  const { data, error, isFetching } = useQuery({
    // A code is never cached.
    queryKey: ['search', wanted.kind, wanted.kind === 'code' ? turn : wanted.text, merchantId],
    gcTime: 0,
    staleTime: 0,
    retry: false,
    queryFn: () => look(wanted, merchantId),
  });
  if (isFetching) return <Busy />;
  if (error) return <Problem error={error} />;
  if (!data || NOUNS.every((noun) => data[noun].length === 0))
    return (
      <Panel>
        <Empty text={texts.search.nothing} />
      </Panel>
    );
  return NOUNS.filter((noun) => data[noun].length > 0).map((noun) => (
    <Panel key={noun} title={texts.nav[noun]}>
      <Rows items={data[noun]} to={pageOf(OF[noun])} {...shownAs(OF[noun])} />
    </Panel>
  ));
}

const NOUNS = ['vouchers', 'transactions', 'batches'] as const;
const OF = { vouchers: 'voucher.list', transactions: 'transaction.list', batches: 'batch.list' } as const;

type Results = {
  readonly vouchers: readonly Item[];
  readonly transactions: readonly Item[];
  readonly batches: readonly Item[];
};

/** Asks for everything that the text could be. If a thing does not exist, its list is empty. */
async function look({ kind, text }: Guess, merchantId: string | undefined): Promise<Results> {
  const vouchers = async (body: object) => (await send<Page<Item>>('POST', '/vouchers/find', { body })).items;
  const one = (item: Promise<Item>) => orNone(item.then((each) => [each]));
  if (kind === 'code') return { vouchers: await vouchers({ code: text }), transactions: [], batches: [] };
  if (kind === 'masked') return { vouchers: await vouchers({ masked: text }), transactions: [], batches: [] };
  if (kind === 'transaction') {
    const [found, transactions, batches] = await Promise.all([
      orNone(vouchers({ transactionId: text })),
      one(get<Item>(`/transactions/${text}`)),
      one(get<Item>(`/batches/${text}`)),
    ]);
    return { vouchers: found, transactions, batches };
  }
  const body = { reference: text, merchantId };
  const [found, transactions] = await Promise.all([
    orNone(vouchers(body)),
    one(send<Item>('POST', '/transactions/find', { body })),
  ]);
  return { vouchers: found, transactions, batches: [] };
}

/** @throws ApiProblem for anything but what was not found */
async function orNone(items: Promise<readonly Item[]>): Promise<readonly Item[]> {
  return items.catch((error: unknown) => {
    if (error instanceof ApiProblem && (error.status === 404 || error.status === 400)) return [];
    throw error;
  });
}
