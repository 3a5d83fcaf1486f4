import Type, { type Static, type TObject } from 'typebox';
import { audit } from '../audit/audit.ts';
import { accountNumber, maskedAccount, requireIban } from '../bank/iban.ts';
import type { Operator, Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { SETTING } from '../figure.ts';
import { listingAll } from '../listing.ts';
import { ofMerchant, requireMerchant } from '../merchants/merchants.ts';
import { DECIMALS_MAX, parseDecimal } from '../money.ts';
import { changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY, SEE } from '../principal.ts';
import { invalid } from '../problem.ts';
import { ProductCode, requireProduct } from '../products/products.ts';
import { Refusal } from '../refusal.ts';
import { columnsOf } from '../row.ts';
import {
  checkDay,
  Day,
  inSection,
  Line,
  MerchantId,
  Nullable,
  NullableText,
  Opening,
  PERCENT_PPM,
  Percent,
  Titled,
  toPpm,
  Word,
  withDefaults,
} from '../schema.ts';
import { requireOpen } from '../zone.ts';

/** The terms of settlement of a merchant, or of one of its products. They are dated and never edited. */

const PERIODS = ['day', 'week', 'month'] as const;
const DELAY_MAX_DAYS = 366;
const LAST_CHARACTERS = 4;

const TermsSchema = Type.Object({
  merchantId: MerchantId,
  product: Nullable(ProductCode, { description: 'Null: all products without own terms.' }),
  from: Day,
  commission: Percent('In percent of what is redeemed.'),
  vat: Percent('In percent of the commission.'),
  period: Titled('Settled every', Nullable(Word(PERIODS))),
  minPayout: Titled('Minimum payout', Nullable(Opening(SETTING, Type.Number()))),
  delayDays: Titled(
    'Payout after (days)',
    Nullable(Opening(SETTING, Type.Integer({ minimum: 0, maximum: DELAY_MAX_DAYS }))),
  ),
  payee: NullableText,
  last4: Titled('Account ends with', NullableText),
});

/** Terms. The minimum payout is in major units, which fit every currency. */
export type Terms = Static<typeof TermsSchema>;

const COLUMNS = columnsOf(TermsSchema, 't', {
  product: sql`p.code`,
  from: sql`t.valid_from::text`,
  commission: sql`t.commission_ppm / ${PERCENT_PPM}::float8`,
  vat: sql`t.vat_ppm / ${PERCENT_PPM}::float8`,
  minPayout: sql`t.min_payout::float8`,
  last4: sql`t.payee_last4`,
});

/** Returns the merchant's own terms on a day, with the keyed digest of the account that is paid. */
export async function termsOn(
  db: Queries,
  merchantId: string | number,
  day: string,
): Promise<(Terms & { readonly payeeDigest: Buffer | null }) | undefined> {
  const [found] = await db.query<Terms & { payeeDigest: Buffer | null }>(sql`
select ${COLUMNS}, t.payee_digest as "payeeDigest"
from settlement_terms t left join products p on p.id = t.product_id
where t.merchant_id = ${merchantId} and t.product_id = 0 and t.valid_from <= ${day}::date
order by t.valid_from desc limit 1`);
  return found;
}

/** Returns the keyed digest by which the account of a payment is compared with that of the terms. */
export function digestOfIban({ keys }: Pick<Service, 'keys'>, iban: string): Buffer {
  return keys.fingerprintOf(`payee ${iban}`);
}

const list = listingAll({
  name: 'settlement.list-terms',
  summary: 'List the terms of a merchant',
  path: '/settlement-terms',
  command: 'settlement terms list',
  input: { merchantId: MerchantId },
  item: TermsSchema,
  roles: SEE,
  async rows(caller, { merchantId }) {
    const { id } = await requireMerchant(caller, merchantId, 'merchantId');
    return caller.service.readDb.query<Terms>(sql`
select ${COLUMNS} from settlement_terms t left join products p on p.id = t.product_id
where t.merchant_id = ${id} order by t.product_id, t.valid_from limit 10000`);
  },
});

/** The fields that belong to the terms of a merchant, not to those of a product. */
const OF_MERCHANT = ['period', 'minPayout', 'delayDays', 'payee', 'iban'] as const;

const DEFAULTS = { vat: 0, period: 'month', minPayout: 0, delayDays: 0 } as const;

const NewTerms = withDefaults(
  {
    ...inSection('identity', {
      merchantId: MerchantId,
      product: Type.Optional(
        Nullable(ProductCode, {
          description: 'The product of the terms; left out: all products without terms of their own.',
        }),
      ),
      from: Type.String({ ...Day, description: 'The first day, which is not closed yet.' }),
    }),
    ...inSection('rates', {
      commission: Percent('In percent of what is redeemed.'),
      vat: Type.Optional(Percent('In percent of the commission.')),
    }),
    ...inSection('payout', {
      period: Type.Optional(Word(PERIODS, { description: 'How often it is settled.' })),
      minPayout: Type.Optional(
        Type.Number({
          title: 'Minimum payout',
          minimum: 0,
          maximum: 999_999_999_999,
          description: 'Smaller amounts are carried over. In major units.',
          examples: [25],
        }),
      ),
      delayDays: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: DELAY_MAX_DAYS,
          description: 'From the end of the period to the payout.',
          option: 'delay',
        }),
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
    }),
  },
  DEFAULTS,
);

/** Returns the minimum payout as text. It has as many decimals as the currency with the most. */
function minPayoutOf(amount: number): string {
  const decimal = parseDecimal(String(amount));
  if (!decimal || decimal.scale > DECIMALS_MAX)
    throw invalid('minPayout', 'decimals', 'has up to four decimals');
  return String(amount);
}

/**
 * Makes terms for a merchant, or for one product of a merchant, from a day on. Terms are never edited, but
 * replaced by newer ones.
 * @throws Problem; Refusal `17` if the day is closed; `94` if there are already terms from this day on
 */
export async function makeTerms(
  operator: Operator,
  { merchantId, product, from, commission, ...given }: Static<TObject<typeof NewTerms>>,
): Promise<Terms> {
  const { service, actor } = operator;
  const { vat, period, minPayout, delayDays } = { ...DEFAULTS, ...given };
  checkDay(from, 'from');
  const misplaced = product && OF_MERCHANT.find((name) => given[name] !== undefined);
  if (misplaced)
    throw invalid(misplaced, 'dependent', 'belongs to the terms of the merchant, not of a product');
  const { id } = await requireMerchant(operator, merchantId, 'merchantId');
  const productId = product ? (await requireProduct(service.db, product)).id : 0;
  const ofMerchant = <Value>(value: Value) => (product ? null : value);
  const iban = given.iban === undefined ? null : requireIban(given.iban, 'iban');
  return service.db.transaction(async (tx) => {
    await requireOpen(tx, from, 'terms');
    const [made] = await tx.query<Terms>(sql`
with t as (
  insert into settlement_terms (merchant_id, product_id, valid_from, commission_ppm, vat_ppm, period,
    min_payout, delay_days, payee, payee_last4, payee_digest, made_by, made_at)
  values (${id}, ${productId}, ${from}::date, ${toPpm(commission, 'commission')}, ${toPpm(vat, 'vat')},
    ${ofMerchant(period)}::settlement_period, ${ofMerchant(minPayoutOf(minPayout))}::numeric,
    ${ofMerchant(delayDays)},
    ${given.payee ?? null}, ${iban?.slice(-LAST_CHARACTERS) ?? null},
    ${iban && digestOfIban(service, iban)}, ${actor.name}, ${service.clock()})
  on conflict do nothing returning *
)
select ${COLUMNS} from t left join products p on p.id = t.product_id`);
    if (!made)
      throw new Refusal('94', {
        message: `there are terms from ${from} on already: terms are never edited`,
      });
    const { merchantId: _id, ...after } = made;
    await audit(tx, operator, { action: 'settlement.terms', subject: `merchant ${id}`, after });
    return made;
  });
}

const set = changing({
  name: 'settlement.terms',
  title: 'Set terms',
  summary: 'Set the terms of a merchant, or of one of its products, from a day on',
  description:
    'The period, the minimum payout, the delay and the payee belong to the merchant, not to a product.',
  path: '/settlement-terms',
  command: 'settlement terms set',
  input: NewTerms,
  output: TermsSchema,
  roles: MONEY,
  approval: twoPeople({ why: 'They decide what the operator earns, and which account is paid.' }),
  agreement: {
    sentence: 'Set the terms of {merchant} from {from}: {commission} percent of its sales are yours',
    async of(asked) {
      const { merchantId, iban: account, ...terms } = asked.input;
      // Lists show it as well: the input shows the number whole.
      const iban = account && maskedAccount(accountNumber(account));
      return { ...(await ofMerchant(asked, merchantId, 'terms')), ...terms, iban };
    },
  },
  run: makeTerms,
});

export const terms = { list, set };

export const OPERATIONS = tableOf(...Object.values(terms));
