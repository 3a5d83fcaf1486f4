import { sql } from '../../db/sql.ts';
import { fieldOf, NUMBER, none, sumOf } from '../../figure.ts';
import { listOf, withReversals } from '../../ledger/kinds.ts';
import { listUnclaimed } from '../escheat.ts';
import { type Declaration, type Definition, money, number, text, word } from './report.ts';

const OF_VOUCHER = fieldOf('voucher.show', 'serialNumber');

/** The most vouchers that the report names. Nobody reads a longer list; set rules by product instead. */
const DORMANT_MAX = 100_000;

/**
 * Vouchers that are dormant at the end of the interval, each with the rule that applied then, and with
 * its balance at that time: the balance now less the movements since then. A redemption with a voucher that
 * it replaced is a use, a correction is none. Months are counted in the zone of the books. A month is at most
 * 3 days and one hour (of summer time) shorter than 31 days, so the filter of the vouchers leaves that much
 * room.
 */
const dormant: Definition = {
  columns: {
    rule: text(sql`d.rule`),
    serialNumber: text(sql`d.serial_number`),
    product: text(sql`d.product`),
    issuedOn: text(sql`d.issued_at::date`),
    lastUsedOn: text(sql`d.used_at::date`),
    dueOn: text(sql`d.due_at::date`),
    balance: money(sql`d.balance_minor`, OF_VOUCHER),
  },
  limit: {
    count: DORMANT_MAX,
    rule: 'too-many-dormant',
    message: `more than ${DORMANT_MAX} vouchers are dormant; narrow the rules by product`,
  },
  from: ({ to, endsAt: at, zone }) => sql`
from (
  select r.name as rule, v.serial_number, p.code as product, b.currency, i.issued_at, i.used_at,
    h.balance_minor,
    case r.basis when 'issue' then i.issued_at else i.used_at end + make_interval(months => r.months)
      as due_at
  from (
    select distinct on (d.name) d.* from dormancy_rules d where d.valid_from < ${to}::date
    order by d.name, d.valid_from desc
  ) r
  join vouchers v
    on v.activated_at <= ${at}::timestamptz - make_interval(months => r.months) + interval '4 days'
  join batches b on b.id = v.batch_id and b.status = 'COMPLETED' and r.product_id in (0, b.product_id)
  join products p on p.id = b.product_id
  left join (
    select j.bucket, j.serial_number, max(j.occurred_at) as used_at from journal j
    where j.kind = 'REDEMPTION' and j.original_id is null and j.occurred_at < ${at} group by 1, 2
  ) u on u.bucket = v.bucket and u.serial_number = v.serial_number
  cross join lateral (
    select v.activated_at at time zone ${zone} as issued_at,
      greatest(u.used_at, v.earlier_use_at, v.activated_at) at time zone ${zone} as used_at
  ) i
  left join (
    select j.bucket, s.serial_number, sum(s.amount_minor)::bigint as amount_minor
    from journal j
    cross join lateral (values (j.debit_account, j.amount_minor), (j.credit_account, -j.amount_minor))
      as s (serial_number, amount_minor)
    where j.occurred_at >= ${at} and j.id >= id_floor(${at}::timestamptz, '-1 hour') group by 1, 2
  ) l on l.bucket = v.bucket and l.serial_number = v.serial_number
  cross join lateral (select v.balance_minor + coalesce(l.amount_minor, 0) as balance_minor) h
) d
where d.due_at at time zone ${zone} <= ${at} and d.balance_minor > 0
order by d.currency, d.rule, d.serial_number limit ${DORMANT_MAX + 1}`,
};

/** The vouchers whose expired money is unclaimed at the end of the interval. */
const unclaimed: Definition = {
  section: 'unclaimed',
  columns: {
    serialNumber: { format: 'count', figure: NUMBER },
    ...{ product: 'text', issuedOn: 'text', lastUsedOn: 'text', expiredOn: 'text' },
    amount: { format: 'money', figure: OF_VOUCHER },
  },
  limit: {
    count: DORMANT_MAX,
    rule: 'too-many-unclaimed',
    message: `the money of more than ${DORMANT_MAX} vouchers is unclaimed; pay the oldest to the state first`,
  },
  rows: ({ tx, endsAt, zone }) =>
    tx.query(
      listUnclaimed({ currency: null, expiredBefore: endsAt, at: endsAt, zone, countMax: DORMANT_MAX + 1 }),
    ),
};

export const dormancy: Declaration = {
  report: 'R10',
  name: 'dormancy',
  title: 'Dormancy',
  use:
    'For the compliance officer, before a filing: vouchers that a law calls dormant, and those whose expired ' +
    'money is unclaimed.',
  tables: [dormant, unclaimed],
};

/** A balance that was paid out in cash was not issued for goods. */
const ISSUED = [...withReversals('ACTIVATION'), 'CASH_OUT'] as const;
const REDEEMED = withReversals('REDEMPTION');
const EXPIRED = withReversals('EXPIRY');

const TREATED = none('By the VAT treatment of each day, which entries do not have; their sums are in R2.');

/**
 * VAT on closed days by the treatment of each day, for the tax adviser. The value of a voucher includes
 * VAT. It is due on the issued value of single-purpose vouchers, and on the redeemed value of multi-purpose
 * vouchers. The tax of each line is rounded once, half away from zero.
 */
const treated: Definition = {
  columns: {
    product: text(sql`product`),
    treatment: word(sql`treatment`),
    country: text(sql`country`),
    ratePercent: number(sql`rate_ppm / 10000.0`),
    issued: money(sql`issued`, TREATED),
    imported: money(sql`imported`, TREATED),
    redeemed: money(sql`redeemed`, TREATED),
    expired: money(sql`expired`, TREATED),
    taxed: money(sql`taxed`, TREATED),
    base: money(sql`base`, TREATED),
    tax: money(sql`taxed - base`, sumOf('taxed', '-base')),
    note: word(sql`case when treatment is null then 'no treatment' else 'prepared' end`),
  },
  from: ({ from, to }) => sql`
from (
  select p.code as product, m.currency, t.treatment, t.country, t.rate_ppm,
    sum(case when m.kind in ${listOf(ISSUED)} then n.minor else 0 end) as issued,
    sum(case when m.kind = 'IMPORT' then n.minor else 0 end) as imported,
    sum(case when m.kind in ${listOf(REDEEMED)} then -n.minor else 0 end) as redeemed,
    sum(case when m.kind in ${listOf(EXPIRED)} then -n.minor else 0 end) as expired
  from book_movements m
  cross join lateral (
    select case m.credit_kind when 'VOUCHER' then m.amount_minor else -m.amount_minor end as minor
  ) n
  join products p on p.id = m.product_id
  left join lateral (
    select v.treatment, v.country, v.rate_ppm from voucher_vat v
    where v.product_id = m.product_id and v.valid_from <= m.day order by v.valid_from desc limit 1
  ) t on true
  where m.day >= ${from}::date and m.day < ${to}::date
    and m.kind in ${listOf([...ISSUED, 'IMPORT', ...REDEEMED, ...EXPIRED])}
  group by p.code, m.currency, t.treatment, t.country, t.rate_ppm
) s
cross join lateral (
  select case treatment when 'single' then issued when 'multi' then redeemed else 0 end as taxed
) t
cross join lateral (select 1000000 + coalesce(rate_ppm, 0) as whole) w
cross join lateral (
  select sign(taxed) * div(abs(taxed) * 2000000.0 + whole, 2.0 * whole) as base
) b
order by product, country, rate_ppm`,
};

export const vat: Declaration = {
  report: 'R11',
  name: 'vat',
  title: 'VAT',
  use: 'For the tax adviser, for each return: vouchers by product, country, rate and purpose.',
  tables: [treated],
  closedOnly: true,
};
