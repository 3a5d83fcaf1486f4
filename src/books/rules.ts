import Type, { type Static, type TObject } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { sql } from '../db/sql.ts';
import { alone, changing, reading, tableOf } from '../operation.ts';
import { MONEY, SEE } from '../principal.ts';
import { invalid } from '../problem.ts';
import { ProductCode, requireProduct } from '../products/products.ts';
import { Refusal } from '../refusal.ts';
import {
  checkDay,
  Day,
  Line,
  Nullable,
  PERCENT_PPM,
  Percent,
  Positional,
  Text,
  toPpm,
  Word,
} from '../schema.ts';
import { requireOpen, today } from '../zone.ts';

/**
 * The rules of reports that follow from a law or an estimate: when a voucher is dormant, how its VAT is
 * treated, and how many are never redeemed.
 */

const FirstDay = Type.Optional(
  Type.String({ ...Day, description: 'The first day, not closed yet; left out: today.' }),
);

/** Returns the given day, or today. @throws Problem if the day does not exist */
async function firstDay({ service }: Operator, given: string | undefined): Promise<string> {
  checkDay(given, 'from');
  return given ?? (await today(service));
}

const Months = Type.Integer({
  minimum: 1,
  maximum: 600,
  description: 'After how many months a voucher is dormant.',
  examples: [36],
});
const Basis = Word(['issue', 'last-use'], {
  title: 'By',
  'x-labels': { issue: 'The issue', 'last-use': 'The last use' },
  description: 'From when the months count.',
});
const Treatment = Word(['single', 'multi', 'outside'], {
  'x-labels': { single: 'Single-purpose', multi: 'Multi-purpose', outside: 'Outside VAT' },
  description: '`single`: due at the issue; `multi`: at the redemption; `outside`: none.',
});
const Country = Type.String({
  pattern: '^[A-Z]{2}$',
  description: 'Two letters of ISO 3166, such as DE.',
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
  from: Day,
  months: Months,
  basis: Basis,
  product: Nullable(ProductCode),
});
const VatSchema = Type.Object({
  product: ProductCode,
  from: Day,
  treatment: Treatment,
  country: Country,
  rate: { ...Percent('In percent.'), title: 'Rate (%)' },
});
const RateSchema = Type.Object({ product: ProductCode, from: Day, percent: Percent('In percent.') });
const ReasonedRate = Type.Object({ ...RateSchema.properties, by: Text, reason: Text });

export const rules = reading({
  name: 'books.rules',
  summary: 'Get the rules of the reports: dormancy (R10), VAT (R11), and estimated breakage (R5)',
  path: '/books/rules',
  input: {},
  output: Type.Object({
    dormancy: Type.Array(DormancySchema),
    vat: Type.Array(VatSchema),
    breakage: Type.Array(ReasonedRate),
  }),
  roles: SEE,
  async run({ service: { readDb } }) {
    const [dormancy, vat, breakage] = await Promise.all([
      readDb.query<Static<typeof DormancySchema>>(sql`
select r.name, r.valid_from::text as "from", r.months, r.basis, p.code as product
from dormancy_rules r left join products p on p.id = r.product_id
order by r.name, r.valid_from desc limit 1000`),
      readDb.query<Static<typeof VatSchema>>(sql`
select p.code as product, v.valid_from::text as "from", v.treatment, v.country,
  v.rate_ppm / ${PERCENT_PPM}::float8 as rate
from voucher_vat v join products p on p.id = v.product_id
order by p.code, v.valid_from desc limit 10000`),
      readDb.query<Static<typeof ReasonedRate>>(sql`
select distinct on (p.code, r.valid_from) p.code as product, r.valid_from::text as "from",
  r.rate_ppm / ${PERCENT_PPM}::float8 as percent, r.set_by as by, r.reason
from book_breakage_rates r join products p on p.id = r.product_id
order by p.code, r.valid_from desc, r.id desc limit 10000`),
    ]);
    return { dormancy, vat, breakage };
  },
});

const NewDormancy = {
  name: Positional(Line(100, 'The name of the rule, such as Delaware.', 'Delaware')),
  from: FirstDay,
  months: Months,
  basis: Basis,
  product: Type.Optional(
    Nullable(ProductCode, { description: 'The product of the vouchers; left out: every product.' }),
  ),
};

/**
 * Makes a rule of dormancy, or changes it, from a day on.
 * @throws Problem; Refusal `17` if the day is closed
 */
export async function setDormancyRule(
  operator: Operator,
  { name, from: given, months, basis, product = null }: Static<TObject<typeof NewDormancy>>,
): Promise<Static<typeof DormancySchema>> {
  const { db } = operator.service;
  const from = await firstDay(operator, given);
  const productId = product === null ? 0 : (await requireProduct(db, product)).id;
  await db.transaction(async (tx) => {
    await requireOpen(tx, from, 'rules');
    await tx.query(sql`
insert into dormancy_rules (name, valid_from, basis, months, product_id)
values (${name}, ${from}::date, ${basis}, ${months}, ${productId})
on conflict (name, valid_from) do update set
  basis = excluded.basis, months = excluded.months, product_id = excluded.product_id`);
    const after = { name, from, basis, months, product };
    await audit(tx, operator, { action: 'books.dormancy', subject: `rule ${name}`, after });
  });
  return { name, from, months, basis, product };
}

export const dormancy = changing({
  name: 'books.dormancy',
  title: 'Add a rule',
  summary:
    'Set when a voucher is dormant under the rules of a jurisdiction, from a day on, for the report R10',
  path: '/books/dormancy',
  input: NewDormancy,
  output: DormancySchema,
  roles: MONEY,
  approval: alone('It moves no money: it is dated, and decides what a report lists.'),
  run: setDormancyRule,
});

const RATE_DEFAULT = 0;

const NewVat = {
  product: Positional(ProductCode),
  from: { ...Day, description: 'The first day.' },
  treatment: Treatment,
  country: Country,
  rate: Type.Optional({ ...Percent('In percent.'), default: RATE_DEFAULT }),
};

/**
 * Sets how the VAT of a product's vouchers is treated from a day on. By law, the treatment and the country
 * of a voucher are fixed when it is issued, so those of a product that has sold vouchers never change. Its
 * rate may.
 * @throws Problem; Refusal `17` if the day is closed; `94` if there is already a treatment from this day on,
 *   or another one of vouchers that were sold
 */
export async function setVatTreatment(
  operator: Operator,
  { product, from, treatment, country, rate = RATE_DEFAULT }: Static<TObject<typeof NewVat>>,
): Promise<Static<typeof VatSchema>> {
  const { db } = operator.service;
  checkDay(from, 'from');
  requireCountry(country);
  const ratePpm = toPpm(rate, 'rate');
  const { id: productId } = await requireProduct(db, product);
  await db.transaction(async (tx) => {
    await requireOpen(tx, from, 'treatments');
    // No batch of the product is accepted until the transaction ends.
    await tx.query(sql`select id from products where id = ${productId} for update`);
    const [sold] = await tx.query<{ treatment: string; country: string }>(sql`
select v.treatment, v.country from voucher_vat v
where v.product_id = ${productId} and exists (select from batches b where b.product_id = v.product_id)
order by v.valid_from desc limit 1`);
    if (sold && (sold.treatment !== treatment || sold.country !== country))
      throw new Refusal('94', {
        message:
          `vouchers of the product were sold as ${sold.treatment}, ${sold.country}, which was fixed at their ` +
          'issue: make another product',
      });
    const [made] = await tx.query(sql`
insert into voucher_vat (product_id, valid_from, treatment, country, rate_ppm)
values (${productId}, ${from}::date, ${treatment}, ${country}, ${ratePpm}) on conflict do nothing
returning product_id`);
    if (!made) throw new Refusal('94', { message: `the product has a treatment from ${from} on already` });
    const after = { product, from, treatment, country, ratePpm };
    await audit(tx, operator, { action: 'books.vat', subject: `product ${product}`, after });
  });
  return { product, from, treatment, country, rate };
}

export const vat = changing({
  name: 'books.vat',
  title: 'Set the treatment',
  summary: 'Set how the VAT of the vouchers of a product is treated from a day on, for the report R11',
  path: '/books/vat',
  input: NewVat,
  output: VatSchema,
  roles: MONEY,
  approval: alone('It moves no money: it is dated, and decides what a report shows.'),
  run: setVatTreatment,
});

const NewRate = {
  product: Positional(ProductCode),
  from: FirstDay,
  percent: Percent('In percent.'),
  reason: Line(500, 'What the estimate rests on.', 'The cohorts of the last three years.'),
};

/**
 * Sets the part of a product's vouchers that is estimated never to be redeemed (R5) from a day on, with its
 * author and reason. The estimate is never posted.
 * @throws Problem; Refusal `17` if the day is closed
 */
export async function setBreakageRate(
  operator: Operator,
  { product, from: given, percent, reason }: Static<TObject<typeof NewRate>>,
): Promise<Static<typeof RateSchema>> {
  const { service, actor } = operator;
  const from = await firstDay(operator, given);
  const ratePpm = toPpm(percent, 'percent');
  const { id } = await requireProduct(service.db, product);
  await service.db.transaction(async (tx) => {
    await requireOpen(tx, from, 'rates');
    await tx.query(sql`
insert into book_breakage_rates (product_id, valid_from, rate_ppm, set_by, reason, set_at)
values (${id}, ${from}::date, ${ratePpm}, ${actor.name}, ${reason}, ${service.clock()})`);
    const after = { ratePpm, from };
    await audit(tx, operator, { action: 'books.breakage-rate', subject: `product ${product}`, after });
  });
  return { product, from, percent };
}

export const breakageRate = changing({
  name: 'books.breakage-rate',
  title: 'Estimate',
  summary:
    'Estimate the part of the vouchers of a product that is never redeemed, from a day on, for the report R5',
  path: '/books/breakage-rate',
  input: NewRate,
  output: RateSchema,
  roles: MONEY,
  approval: alone('It moves no money: it is an estimate in a report.'),
  run: setBreakageRate,
});

export const OPERATIONS = tableOf(rules, dormancy, vat, breakageRate);
