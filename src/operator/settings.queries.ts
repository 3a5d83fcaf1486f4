import { type Sql, sql } from '../db/sql.ts';

export function listSettings(): Sql {
  return sql`select name, value from operator_settings`;
}

export function upsertSetting(name: string, value: string, now: Date): Sql {
  return sql`
insert into operator_settings (name, value, changed_at) values (${name}, ${value}, ${now})
on conflict (name) do update set value = excluded.value, changed_at = excluded.changed_at`;
}

/**
 * Setting after setting: of two changes at once, the second one finds what the first one left. The number is
 * this lock's own.
 */
export function lockSettings(): Sql {
  return sql`select pg_advisory_xact_lock(7311990021)`;
}
