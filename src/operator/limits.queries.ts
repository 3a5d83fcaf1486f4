import { type Sql, sql } from '../db/sql.ts';

type Inserted = {
  readonly maker: string;
  readonly operation: string;
  readonly subjects: readonly string[];
  readonly currency: string;
  readonly minor: bigint;
  readonly now: Date;
};

export function insertMoved({ maker, operation, subjects, currency, minor, now }: Inserted): Sql {
  return sql`
insert into manual_movements (moved_at, maker, operation, subjects, currency, amount_minor)
values (${now}, ${maker}, ${operation}, ${subjects}::text[], ${currency}, ${minor})`;
}

export type MovedRow = { readonly currency: string; readonly moved_minor: bigint };

/**
 * Sums up what a maker has moved since a time, and what was moved of each subject by whomever but the command
 * line, for each currency.
 */
export function listMovedSums(of: {
  readonly maker: string;
  readonly subjects: readonly string[];
  readonly currencies: readonly string[];
  readonly since: Date;
}): Sql {
  return sql`
with moved as materialized (
  select maker, subjects, currency, amount_minor from manual_movements
  where moved_at > ${of.since} and currency = any (${of.currencies}::text[])
)
select currency, sum(amount_minor)::bigint as moved_minor from moved where maker = ${of.maker}
group by currency
union all
select m.currency, sum(m.amount_minor)::bigint
from unnest(${of.subjects}::text[]) s join moved m on s = any (m.subjects) and m.maker <> 'machine'
group by s, m.currency`;
}
