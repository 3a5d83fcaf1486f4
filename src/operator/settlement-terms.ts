import Type, { type Static } from 'typebox';
import { accountNumber, maskedAccount } from '../bank/iban.ts';
import { ofMerchant, requireMerchant } from '../merchants/merchants.ts';
import { DECIMALS_MAX, parseDecimal } from '../money.ts';
import { changing, reading, tableOf, twoPeople } from '../operation.ts';
import { Page } from '../page.ts';
import { MONEY, SEE } from '../principal.ts';
import { invalid } from '../problem.ts';
import { ProductCode, requireProduct } from '../products/products.ts';
import {
  checkDay,
  Day,
  Input,
  Line,
  MerchantId,
  Nullable,
  NullableText,
  PERCENT_PPM,
  Percent,
  Reason,
  toPpm,
  Word,
} from '../schema.ts';
import { makeTerms, readTerms, type Terms as TermsInfo } from '../settlement/terms.ts';
import { requireIban } from './bank.ts';

/** The terms of settlement. They are dated and never edited. */

const PERIODS = ['day', 'week', 'month'] as const;

const TermsSchema = Type.Object({
  merchantId: MerchantId,
  product: Nullable(ProductCode, { description: 'Null: all products without own terms.' }),
  from: Day,
  commission: Percent('In percent of what is redeemed.'),
  vat: Percent('In percent of the commission.'),
  period: Nullable(Word(PERIODS)),
  leastPayout: Nullable(Type.Number()),
  delayDays: Nullable(Type.Integer({ minimum: 0, maximum: 366 })),
  payee: NullableText,
  last4: NullableText,
});

export type Terms = Static<typeof TermsSchema>;

function toJson({ merchantId, product, validFrom, commissionPpm, vatPpm, ...terms }: TermsInfo): Terms {
  const { period, leastPayout, delayDays, payee, payeeLast4: last4 } = terms;
  return {
    merchantId: String(merchantId),
    product,
    from: validFrom,
    commission: commissionPpm / PERCENT_PPM,
    vat: vatPpm / PERCENT_PPM,
    period,
    leastPayout: leastPayout === null ? null : Number(leastPayout),
    delayDays,
    payee,
    last4,
  };
}

const list = reading({
  name: 'settlement.list-terms',
  summary: 'List the terms of a merchant',
  method: 'GET',
  path: '/settlement-terms',
  command: 'settlement terms list',
  input: Input({ merchantId: MerchantId }),
  output: Page(TermsSchema),
  roles: SEE,
  async run(caller, { merchantId }) {
    const { id } = await requireMerchant(caller, merchantId, 'merchantId');
    return { items: (await readTerms(caller.service.readDb, id)).map(toJson), nextCursor: null };
  },
});

const OF_MERCHANT = ['period', 'leastPayout', 'delayDays', 'payee', 'iban'] as const;

/** Returns the least payout as text. It has as many decimals as the currency with the most. */
function leastPayoutOf(amount: number): string {
  const decimal = parseDecimal(String(amount));
  if (!decimal || decimal.scale > DECIMALS_MAX)
    throw invalid('leastPayout', 'decimals', 'has up to four decimals');
  return String(amount);
}

const set = changing({
  name: 'settlement.terms',
  summary: 'Set the terms of a merchant, or of one of its products, from a day on',
  description:
    'The period, the least payout, the delay and the payee belong to the merchant, not to a product.',
  method: 'POST',
  path: '/settlement-terms',
  command: 'settlement terms set',
  input: Input({
    merchantId: MerchantId,
    product: Type.Optional(Nullable(ProductCode)),
    from: Day,
    commission: Percent('In percent of what is redeemed.'),
    vat: Type.Optional(Percent('In percent of the commission; left out: 0.')),
    period: Type.Optional(Word(PERIODS, { description: 'Left out: `month`.' })),
    leastPayout: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 999_999_999_999,
        description: 'Smaller amounts are carried over. In major units; left out: 0.',
        examples: [25],
      }),
    ),
    delayDays: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 366, description: 'From the end of the period to the payout.' }),
    ),
    payee: Type.Optional(Line(100, 'How you name the bank account.', 'Kiosk at the bank of the town')),
    iban: Type.Optional(
      Line(
        50,
        'The account that payout files pay. Its last four characters and a keyed digest are stored; left out: ' +
          'no payout file pays the merchant.',
        'DE89370400440532013000',
      ),
    ),
    reason: Reason,
  }),
  output: TermsSchema,
  roles: MONEY,
  approval: twoPeople({ why: 'They decide what the operator earns, and which account is paid.' }),
  agreement: {
    sentence: 'Set the terms of {merchant} from {from}: {commission} percent of its sales are yours',
    async of(asked) {
      const { merchantId, reason: _reason, iban: account, ...terms } = asked.input;
      // Lists show it as well: the input shows the number whole.
      const iban = account && maskedAccount(accountNumber(account));
      return { ...(await ofMerchant(asked, merchantId, 'terms')), ...terms, iban };
    },
  },
  async run(caller, { merchantId, product, from, commission, vat = 0, ...given }) {
    checkDay(from, 'from');
    const misplaced = product && OF_MERCHANT.find((name) => given[name] !== undefined);
    if (misplaced)
      throw invalid(misplaced, 'dependent', 'belongs to the terms of the merchant, not of a product');
    const { id } = await requireMerchant(caller, merchantId, 'merchantId');
    const found = product ? await requireProduct(caller.service.db, product) : null;
    const { period = 'month', delayDays = 0, payee = null } = given;
    const payeeIban = given.iban === undefined ? null : requireIban(given.iban, 'iban');
    const leastPayout = leastPayoutOf(given.leastPayout ?? 0);
    const ofMerchant = found
      ? { period: null, leastPayout: null, delayDays: null, payee: null, payeeIban: null }
      : { period, leastPayout, delayDays, payee, payeeIban };
    const terms = {
      merchantId: id,
      productId: found?.id ?? 0,
      product: found?.code ?? null,
      validFrom: from,
      commissionPpm: toPpm(commission, 'commission'),
      vatPpm: toPpm(vat, 'vat'),
      ...ofMerchant,
    };
    return toJson(await makeTerms(caller, terms));
  },
});

export const settlementTerms = { list, set };

export const SETTLEMENT_TERMS = tableOf(list, set);
