import { type Sql, sql } from '../db/sql.ts';

/** Claims an Idempotency-Key; no row where it is taken, once the transaction that took it has ended. */
export function claimRequest(
  actor: string,
  key: string,
  operation: string,
  fingerprint: Buffer,
  now: Date,
): Sql {
  return sql`
insert into operator_requests (actor, idempotency_key, operation, fingerprint, created_at)
values (${actor}, ${key}, ${operation}, ${fingerprint}, ${now}) on conflict do nothing
  returning 1 as claimed`;
}

export function findRequest(actor: string, key: string): Sql {
  return sql`
select operation, fingerprint, output from operator_requests where actor = ${actor}
  and idempotency_key = ${key}`;
}

export function finishRequest(actor: string, key: string, output: string): Sql {
  return sql`
    update operator_requests set output = ${output} where actor = ${actor} and idempotency_key = ${key}`;
}

/** Gives a key back whose operation was declined. */
export function forgetRequest(actor: string, key: string): Sql {
  return sql`
    delete from operator_requests where actor = ${actor} and idempotency_key = ${key} and output is null`;
}
