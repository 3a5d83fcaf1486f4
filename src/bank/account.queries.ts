import { type Sql, sql } from '../db/sql.ts';

export type AccountRow = {
  name: string;
  currency: string;
  decimals: number;
  number: string | null;
  own_minor: bigint;
  /** The day from which the own money counts; null: from the beginning. */
  own_from: string | null;
};

/** The accounts with the own money of a day, $1. */
const ACCOUNTS = `
select a.name, a.currency, a.decimals, a.number, coalesce(o.own_minor, 0)::bigint as own_minor,
  nullif(o.valid_from, '-infinity')::text as own_from
from bank_accounts a
left join lateral (
  select * from bank_own where account = a.name and valid_from <= $1::date order by valid_from desc limit 1
) o on true`;

/** @param day the day whose own money is returned */
export function findBankAccount(name: string, day: string): Sql {
  return { text: `${ACCOUNTS} where a.name = $2`, values: [day, name] };
}

export function listBankAccounts(day: string): Sql {
  return { text: `${ACCOUNTS} order by a.currency, a.name limit 1000`, values: [day] };
}

/** Returns no row if there is an account of this name. */
export function insertBankAccount(name: string, currency: string, decimals: number): Sql {
  return sql`
insert into bank_accounts (name, currency, decimals) values (${name}, ${currency}, ${decimals})
on conflict do nothing returning name`;
}

export function lockBankAccount(name: string): Sql {
  return sql`select name from bank_accounts where name = ${name} for update`;
}

export function setNumber(name: string, number: string): Sql {
  return sql`update bank_accounts set number = ${number} where name = ${name}`;
}

/** @param from null: from the beginning */
export function upsertOwn(name: string, from: string | null, ownMinor: bigint): Sql {
  return sql`
insert into bank_own (account, valid_from, own_minor)
values (${name}, coalesce(${from}::date, '-infinity'), ${ownMinor})
on conflict (account, valid_from) do update set own_minor = excluded.own_minor`;
}

export function findMapping(name: string): Sql {
  return sql`select name, mapping from bank_mappings where name = ${name}`;
}

export const listMappings = sql`select name, mapping from bank_mappings order by name limit 1000`;

export function upsertMapping(name: string, mapping: string): Sql {
  return sql`
insert into bank_mappings (name, mapping) values (${name}, ${mapping}::json)
on conflict (name) do update set mapping = excluded.mapping`;
}
