import Type, { type Static } from 'typebox';
import { type GlAccountRow, listGlAccounts } from '../books/export.queries.ts';
import { GL_KINDS, setGlAccount } from '../books/gl.ts';
import { listDormancyRules, listProductRates, listVatTreatments } from '../books/tax.queries.ts';
import { setBreakageRate, setDormancyRule, setVatTreatment } from '../books/tax.ts';
import { today } from '../ledger/zone.ts';
import { requireMerchant } from '../merchants/merchants.ts';
import { alone, changing, reading, tableOf } from '../operation.ts';
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
  Percent,
  Reason,
  Text,
  toPpm,
  Word,
} from '../schema.ts';

/** The rules of the books: account numbers, and rules that follow from a law or an estimate. */

const AccountNumber = Type.String({
  pattern: '^[A-Za-z0-9 ._/-]{1,30}$',
  description: 'In your accounting system.',
  examples: ['1600'],
});

const AccountSchema = Type.Object({
  kind: Word(GL_KINDS),
  merchantId: Nullable(MerchantId, { description: 'Null: any merchant.' }),
  product: Nullable(ProductCode, { description: 'Null: any product.' }),
  number: Text,
  taxCode: NullableText,
});
export type GlAccount = Static<typeof AccountSchema>;

const accounts = reading({
  name: 'books.accounts',
  summary: 'List the account numbers of your accounting system',
  method: 'GET',
  path: '/books/accounts',
  command: 'books accounts',
  input: Input({}),
  output: Page(AccountSchema),
  roles: SEE,
  async run({ service }) {
    const rows = await service.readDb.query<GlAccountRow & { product: string | null }>(listGlAccounts());
    const items = rows.map((row) => ({
      kind: row.account_kind as GlAccount['kind'],
      merchantId: row.merchant_id === 0 ? null : String(row.merchant_id),
      product: row.product,
      number: row.account,
      taxCode: row.tax_code,
    }));
    return { items, nextCursor: null };
  },
});

const account = changing({
  name: 'books.account',
  summary: 'Give a kind of account its number in your accounting system, for the export `gl`',
  method: 'POST',
  path: '/books/accounts',
  command: 'books account',
  input: Input({
    kind: Word(GL_KINDS),
    number: AccountNumber,
    merchantId: Type.Optional(Nullable(MerchantId)),
    product: Type.Optional(Nullable(ProductCode)),
    taxCode: Type.Optional(Nullable(AccountNumber)),
    reason: Reason,
  }),
  output: AccountSchema,
  roles: MONEY,
  approval: alone('It moves no money: it names the accounts of the general ledger.'),
  risk: 'step-up',
  async run(caller, { kind, number, merchantId, product, taxCode = null }) {
    const merchant = merchantId ? await requireMerchant(caller, merchantId, 'merchantId') : null;
    const found = product ? await requireProduct(caller.service.db, product) : null;
    await setGlAccount(caller, {
      account_kind: kind,
      merchant_id: merchant?.id ?? 0,
      product_id: found?.id ?? 0,
      account: number,
      tax_code: taxCode,
    });
    return { kind, number, merchantId: merchantId ?? null, product: found?.code ?? null, taxCode };
  },
});

const Months = Type.Integer({ minimum: 1, maximum: 600, examples: [36] });
const Basis = Word(['issue', 'last-use'], { description: 'From when the months count.' });
const Treatment = Word(['single', 'multi', 'outside'], {
  description: '`single`: due at the issue; `multi`: at the redemption; `outside`: none.',
});
const Country = Type.String({
  pattern: '^[A-Z]{2}$',
  description: 'A code of ISO 3166.',
  examples: ['DE'],
});

/** What Unicode has beside the countries: unions, the unknown, and what is for tests. */
const NO_COUNTRIES = ['EU', 'EZ', 'UN', 'ZZ', 'QO', 'XA', 'XB'];
const regions = new Intl.DisplayNames(['en'], { type: 'region', fallback: 'none' });

/** @throws Problem for what is no country, and for former codes such as UK and DD */
function requireCountry(code: string): void {
  const isCurrent = new Intl.Locale(`und-${code}`).region === code;
  if (regions.of(code) === undefined || !isCurrent || NO_COUNTRIES.includes(code))
    throw invalid('country', 'country', 'is not the code of a country in ISO 3166, such as DE, GB or GR');
}

const DormancySchema = Type.Object({
  name: Text,
  months: Months,
  basis: Basis,
  product: Nullable(ProductCode),
});
const VatSchema = Type.Object({
  product: ProductCode,
  from: Day,
  treatment: Treatment,
  country: Country,
  rate: Type.Number(),
});
const RateSchema = Type.Object({ product: ProductCode, from: Day, percent: Type.Number() });

const rules = reading({
  name: 'books.rules',
  summary: 'Get the rules of the reports: dormancy (R10), VAT (R11), and estimated breakage (R5)',
  method: 'GET',
  path: '/books/rules',
  command: 'books rules',
  input: Input({}),
  output: Type.Object({
    dormancy: Type.Array(DormancySchema),
    vat: Type.Array(VatSchema),
    breakage: Type.Array(Type.Object({ ...RateSchema.properties, by: Text, reason: Text })),
  }),
  roles: SEE,
  async run({ service: { readDb } }) {
    const [dormancyRules, treatments, rates] = await Promise.all([
      readDb.query<Static<typeof DormancySchema>>(listDormancyRules()),
      readDb.query<Static<typeof VatSchema>>(listVatTreatments()),
      readDb.query<Static<typeof RateSchema> & { by: string; reason: string }>(listProductRates()),
    ]);
    return { dormancy: [...dormancyRules], vat: [...treatments], breakage: [...rates] };
  },
});

const dormancy = changing({
  name: 'books.dormancy',
  summary: 'Set when a voucher is dormant under the rules of a jurisdiction, for the report R10',
  method: 'POST',
  path: '/books/dormancy',
  command: 'books dormancy',
  input: Input({
    name: Line(100, 'The name of the rule.', 'Delaware'),
    months: Months,
    basis: Basis,
    product: Type.Optional(Nullable(ProductCode)),
    reason: Reason,
  }),
  output: DormancySchema,
  roles: MONEY,
  approval: alone('It moves no money: it decides what a report lists.'),
  async run(caller, { name, months, basis, product: code }) {
    const product = code ? await requireProduct(caller.service.db, code) : null;
    await setDormancyRule(caller, { name, basis, months, productId: product?.id ?? 0 });
    return { name, months, basis, product: product?.code ?? null };
  },
});

const vat = changing({
  name: 'books.vat',
  summary: 'Set how the VAT of the vouchers of a product is treated from a day on, for the report R11',
  method: 'POST',
  path: '/books/vat',
  command: 'books vat',
  input: Input({
    product: ProductCode,
    from: Day,
    treatment: Treatment,
    country: Country,
    rate: Type.Optional(Percent('In percent; left out: 0.')),
    reason: Reason,
  }),
  output: VatSchema,
  roles: MONEY,
  approval: alone('It moves no money: it is dated, and decides what a report shows.'),
  async run(caller, { product: code, from, treatment, country, rate = 0 }) {
    checkDay(from, 'from');
    requireCountry(country);
    const ratePpm = toPpm(rate, 'rate');
    const { id: productId } = await requireProduct(caller.service.db, code);
    await setVatTreatment(caller, code, { productId, from, treatment, country, ratePpm });
    return { product: code, from, treatment, country, rate };
  },
});

const breakageRate = changing({
  name: 'books.breakage-rate',
  summary:
    'Estimate the part of the vouchers of a product that is never redeemed, from a day on, for the report R5',
  method: 'POST',
  path: '/books/breakage-rate',
  command: 'books breakage-rate',
  input: Input({
    product: ProductCode,
    from: Type.Optional(
      Type.String({ ...Day, description: 'The first day, not closed yet; left out: today.' }),
    ),
    percent: Percent('In percent.'),
    reason: Line(500, 'What the estimate rests on.', 'The cohorts of the last three years.'),
  }),
  output: RateSchema,
  roles: MONEY,
  approval: alone('It moves no money: it is an estimate in a report.'),
  async run(caller, { product: code, from: given, percent }) {
    checkDay(given, 'from');
    const { id: productId } = await requireProduct(caller.service.db, code);
    const from = given ?? (await today(caller.service));
    await setBreakageRate(caller, { productId, code, from, ratePpm: toPpm(percent, 'percent') });
    return { product: code, from, percent };
  },
});

export const booksRules = { accounts, account, rules, dormancy, vat, breakageRate };

export const BOOKS_RULES = tableOf(...Object.values(booksRules));
