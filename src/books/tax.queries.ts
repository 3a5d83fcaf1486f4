import { type Sql, sql } from '../db/sql.ts';

export type DormancyRule = {
  readonly name: string;
  readonly basis: 'issue' | 'last-use';
  readonly months: number;
  /** 0 means all products. */
  readonly productId: number;
};

export function upsertDormancyRule({ name, basis, months, productId }: DormancyRule): Sql {
  return sql`
insert into dormancy_rules (name, basis, months, product_id)
values (${name}, ${basis}, ${months}, ${productId})
on conflict (name) do update set
  basis = excluded.basis, months = excluded.months, product_id = excluded.product_id`;
}

export type VatTreatment = {
  readonly productId: number;
  readonly from: string;
  readonly treatment: 'single' | 'multi' | 'outside';
  readonly country: string;
  readonly ratePpm: number;
};

/** Returns no row if there is already a treatment from this day on. */
export function insertVatTreatment({ productId, from, treatment, country, ratePpm }: VatTreatment): Sql {
  return sql`
insert into voucher_vat (product_id, valid_from, treatment, country, rate_ppm)
values (${productId}, ${from}::date, ${treatment}, ${country}, ${ratePpm}) on conflict do nothing
returning product_id`;
}

/** Locks a product, so that no batch of it is accepted until the transaction ends. */
export function lockProduct(productId: number): Sql {
  return sql`select id from products where id = ${productId} for update`;
}

/** Returns the newest treatment of a product; no row if it has none, or no batch. */
export function findTreatmentOfSold(productId: number): Sql {
  return sql`
select v.treatment, v.country from voucher_vat v
where v.product_id = ${productId} and exists (select from batches b where b.product_id = v.product_id)
order by v.valid_from desc limit 1`;
}

export type DormantRow = {
  rule: string;
  serial_number: bigint;
  product: string;
  currency: string;
  /** Days in the zone of the books. */
  issued_on: string;
  used_on: string;
  due_on: string;
  balance_minor: bigint;
};

/**
 * Lists the vouchers that are dormant at an instant, with their balance at that instant: the balance now less
 * the movements since then. A redemption with a voucher that it replaced is a use, a correction is none.
 * Months are counted in the zone of the books. A month is at most 3 days and one
 * hour (of summer time) shorter than 31 days, so the filter of the vouchers leaves that much room.
 */
export function listDormant(at: Date, zone: string, countMax: number): Sql {
  return sql`
select d.rule, d.serial_number, d.product, d.currency, d.balance_minor, d.issued_at::date::text as issued_on,
  d.used_at::date::text as used_on, d.due_at::date::text as due_on
from (
  select r.name as rule, v.serial_number, p.code as product, b.currency, i.issued_at, i.used_at,
    h.balance_minor,
    case r.basis when 'issue' then i.issued_at else i.used_at end + make_interval(months => r.months)
      as due_at
  from dormancy_rules r
  join vouchers v
    on v.activated_at <= ${at}::timestamptz - make_interval(months => r.months) + interval '4 days'
  join batches b on b.id = v.batch_id and b.status = 'COMPLETED' and r.product_id in (0, b.product_id)
  join products p on p.id = b.product_id
  left join lateral (
    select max(j.occurred_at) as used_at from journal j
    where j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'REDEMPTION'
      and j.original_id is null and j.occurred_at < ${at}
  ) u on true
  cross join lateral (
    select v.activated_at at time zone ${zone} as issued_at,
      greatest(u.used_at, v.earlier_use_at, v.activated_at) at time zone ${zone} as used_at
  ) i
  cross join lateral (
    select
      v.balance_minor + coalesce(sum(
        case when j.debit_account = v.serial_number then j.amount_minor else -j.amount_minor end
      ), 0)::bigint as balance_minor
    from journal j
    where j.bucket = v.bucket and j.serial_number in (v.serial_number, v.replaced_by)
      and v.serial_number in (j.debit_account, j.credit_account) and j.occurred_at >= ${at}
      and j.id >= id_floor(${at}::timestamptz, '-1 hour')
  ) h
) d
where d.due_at at time zone ${zone} <= ${at} and d.balance_minor > 0
order by d.currency, d.rule, d.serial_number limit ${countMax}`;
}

export type VatRow = {
  product: string;
  currency: string;
  treatment: VatTreatment['treatment'] | null;
  country: string | null;
  rate_ppm: number | null;
  issued_minor: bigint;
  imported_minor: bigint;
  redeemed_minor: bigint;
  expired_minor: bigint;
};

/**
 * Sums the issued, redeemed and expired amounts of each product on closed days, by the treatment of each day.
 */
export function sumVat(from: string, to: string): Sql {
  return sql`
select p.code as product, m.currency, t.treatment, t.country, t.rate_ppm,
  sum(case
    when m.kind = 'ACTIVATION' then m.amount_minor
    when m.kind in ('VOID', 'CANCELLATION', 'CASH_OUT') then -m.amount_minor
    else 0
  end)::bigint as issued_minor,
  sum(case m.kind when 'IMPORT' then m.amount_minor else 0 end)::bigint as imported_minor,
  sum(case m.kind
    when 'REDEMPTION' then m.amount_minor
    when 'REDEMPTION_REVERSAL' then -m.amount_minor
    else 0
  end)::bigint as redeemed_minor,
  sum(case m.kind
    when 'EXPIRY' then m.amount_minor
    when 'REINSTATEMENT' then -m.amount_minor
    else 0
  end)::bigint as expired_minor
from book_movements m
join products p on p.id = m.product_id
left join lateral (
  select v.treatment, v.country, v.rate_ppm from voucher_vat v
  where v.product_id = m.product_id and v.valid_from <= m.day order by v.valid_from desc limit 1
) t on true
where m.day >= ${from}::date and m.day < ${to}::date
  and m.kind in ('ACTIVATION', 'VOID', 'CANCELLATION', 'CASH_OUT', 'IMPORT', 'REDEMPTION',
    'REDEMPTION_REVERSAL', 'EXPIRY', 'REINSTATEMENT')
group by p.code, m.currency, t.treatment, t.country, t.rate_ppm
order by m.currency, p.code, t.country, t.rate_ppm`;
}

/** Lists the rules of dormancy. A rule without a product applies to all products. */
export function listDormancyRules(): Sql {
  return sql`
select r.name, r.months, r.basis, p.code as product
from dormancy_rules r left join products p on p.id = r.product_id order by r.name limit 1000`;
}

/** Lists the treatments of VAT, product by product, newest first. */
export function listVatTreatments(): Sql {
  return sql`
select p.code as product, v.valid_from::text as "from", v.treatment, v.country,
  v.rate_ppm / 10000.0::float8 as rate
from voucher_vat v join products p on p.id = v.product_id
order by p.code, v.valid_from desc limit 10000`;
}

/** Lists the estimated breakage of products, newest first, with author and reason. */
export function listProductRates(): Sql {
  return sql`
select distinct on (p.code, r.valid_from) p.code as product, r.valid_from::text as "from",
  r.rate_ppm / 10000.0::float8 as percent, r.set_by as by, r.reason
from book_breakage_rates r join products p on p.id = r.product_id
order by p.code, r.valid_from desc, r.id desc limit 10000`;
}
