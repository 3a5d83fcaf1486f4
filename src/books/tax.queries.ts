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
