import Type, { type Static } from 'typebox';
import { changeIn } from '../agreement.ts';
import type { FloatFilter } from '../books/floats.ts';
import { pageOfFloats } from '../books/floats.ts';
import { setLow, topUp } from '../merchants/floats.ts';
import { ofMerchant, requireMerchant } from '../merchants/merchants.ts';
import { toNumber } from '../money.ts';
import { ABOVE_LIMIT, alone, type Caller, changing, reading, tableOf, twoPeople } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { MONEY, SEE_VOUCHERS } from '../principal.ts';
import { Problem } from '../problem.ts';
import { currencyOf, FloatCurrency } from '../products/products.ts';
import { Amount, Input, Line, Major, MerchantId, Money, minorOf, Nullable, Reason, Text } from '../schema.ts';

const FloatSchema = Type.Object({
  merchantId: MerchantId,
  merchant: Text,
  currency: Text,
  balance: Major(),
  usePerDay: Major('The mean use per day over the last 28 days, or since the merchant was created.'),
  daysLeft: Nullable(
    Type.Integer({ description: 'The days that the float will last at that use; null without any use.' }),
  ),
  low: Nullable(Major('The threshold at which the merchant is warned; null before the first top-up.')),
});

export type Float = Static<typeof FloatSchema>;

const topUpFloat = changing({
  name: 'float.top-up',
  summary: 'Put money on a float',
  method: 'POST',
  path: '/floats/top-up',
  command: 'float top-up',
  input: Input({
    merchantId: MerchantId,
    amount: Amount('In major units.'),
    currency: FloatCurrency,
    reference: Type.Optional(
      Nullable(Line(100, 'Your reference: a repetition under it tops up once.', 'transfer-81')),
    ),
    reason: Reason,
  }),
  output: Type.Object({
    merchantId: MerchantId,
    currency: Text,
    balance: Money(),
    transactionId: Text,
    replayed: Type.Boolean(),
  }),
  roles: MONEY,
  approval: twoPeople({
    why: 'Money on a float can be spent at once.',
    when: [ABOVE_LIMIT],
  }),
  agreement: {
    sentence: 'Top up the float of {merchant} by {amount}: {before} → {after}',
    async of(asked) {
      const { merchantId, reference = null } = asked.input;
      const { before, after } = changeIn(asked);
      const about = await ofMerchant(asked, merchantId);
      const found = { amount: after['amount'], before: before['balance'], after: after['balance'] };
      return { ...about, ...found, reference: reference ?? undefined };
    },
  },
  async run(caller, { merchantId, amount, currency: given, reference }) {
    const { id, product } = await requireMerchant(caller, merchantId, 'merchantId');
    const currency = await currencyOf(caller, given, product);
    const amountMinor = minorOf(amount, currency, 'amount');
    const done = await topUp(caller, {
      merchantId: id,
      currency,
      amountMinor,
      reference: reference ?? undefined,
    });
    const { float, transactionId, replayed } = done;
    return { merchantId, ...float, transactionId, replayed };
  },
});

const warnFloat = changing({
  name: 'float.warn',
  summary: 'Set the threshold of a low float, at which its merchant gets an event',
  method: 'POST',
  path: '/floats/warn',
  command: 'float warn',
  input: Input({
    merchantId: MerchantId,
    below: Nullable(Amount('In major units; null: a tenth of the float after its last top-up.')),
    currency: FloatCurrency,
    reason: Reason,
  }),
  output: Type.Object({ merchantId: MerchantId, currency: Text, below: Nullable(Major()) }),
  roles: MONEY,
  approval: alone('It moves no money: it decides when the merchant is warned.'),
  risk: 'step-up',
  async run(caller, { merchantId, below, currency: given }) {
    const { id, product } = await requireMerchant(caller, merchantId, 'merchantId');
    const currency = await currencyOf(caller, given, product);
    const lowMinor = below === null ? null : minorOf(below, currency, 'below');
    if (!(await setLow(caller, id, currency, lowMinor)))
      throw new Problem('conflict', `merchant ${merchantId} has no float in ${currency}: top it up first`);
    return { merchantId, currency, below };
  },
});

const showFloats = reading({
  name: 'float.show',
  summary: 'List floats, merchant by merchant: those of one merchant, or of all',
  method: 'GET',
  path: '/floats',
  command: 'float show',
  input: Input({ ...PAGE, merchantId: Type.Optional(MerchantId) }),
  output: Page(FloatSchema),
  roles: SEE_VOUCHERS,
  async run(caller, { merchantId, ...page }) {
    const merchant = merchantId === undefined ? null : await requireMerchant(caller, merchantId);
    return listFloats(caller, 'floats', { merchantId: merchant?.id ?? null, isLow: false }, page);
  },
});

const lowFloats = reading({
  name: 'float.low',
  summary: 'List the floats that are below their threshold, merchant by merchant',
  method: 'GET',
  path: '/floats/low',
  command: 'float low',
  input: Input({ ...PAGE }),
  output: Page(FloatSchema),
  roles: SEE_VOUCHERS,
  run: (caller, page) => listFloats(caller, 'low floats', { merchantId: null, isLow: true }, page),
});

async function listFloats(
  { service }: Caller,
  what: string,
  filter: FloatFilter,
  { cursor, limit = 50 }: { readonly cursor?: string; readonly limit?: number },
) {
  const given = { merchantId: filter.merchantId };
  const [id = 0, currency = ''] = readCursor(what, given, cursor) ?? [];
  const after = { merchantId: Number(id), currency: String(currency) };
  const found = await pageOfFloats(service, filter, after, limit + 1);
  const items = found.map(
    ({ merchantId, merchant, currency: of, balance, usePerDay, daysLeft, low }): Float => ({
      merchantId: String(merchantId),
      merchant,
      currency: of,
      balance: toNumber(balance),
      usePerDay: toNumber(usePerDay),
      daysLeft,
      low: low && toNumber(low),
    }),
  );
  return pageOf(what, given, items, limit, (each) => [Number(each.merchantId), each.currency]);
}

export const floats = { topUp: topUpFloat, warn: warnFloat, show: showFloats, low: lowFloats };

export const FLOATS = tableOf(...Object.values(floats));
