import { type Sql, sql } from '../db/sql.ts';

/** The rules of dormancy; product null: all of them. */
export function listDormancyRules(): Sql {
  return sql`
select r.name, r.months, r.basis, p.code as product
from dormancy_rules r left join products p on p.id = r.product_id order by r.name limit 1000`;
}

/** The treatments of VAT, product by product, the newest first. */
export function listVatTreatments(): Sql {
  return sql`
select p.code as product, v.valid_from::text as "from", v.treatment, v.country,
  v.rate_ppm / 10000.0::float8 as rate
from voucher_vat v join products p on p.id = v.product_id
order by p.code, v.valid_from desc limit 10000`;
}

/** The breakage that is estimated of each product, with its author and reason. */
export function listProductRates(): Sql {
  return sql`
select distinct on (p.code) p.code as product, r.rate_ppm / 10000.0::float8 as percent, r.set_by as by,
  r.reason
from book_breakage_rates r join products p on p.id = r.product_id
order by p.code, r.id desc`;
}
