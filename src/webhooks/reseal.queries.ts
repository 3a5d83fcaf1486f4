import { type Sql, sql } from '../db/sql.ts';

/** Every secret, those of endpoints that were removed too: nothing may depend on a key unseen. */
export function listSecrets(): Sql {
  return sql`select id, secret, previous_secret from webhook_endpoints order by id`;
}

export function lockSecrets(id: number): Sql {
  return sql`select id, secret, previous_secret from webhook_endpoints where id = ${id} for update`;
}

export function setSecrets(id: number, secret: Buffer, previous: Buffer | null): Sql {
  return sql`update webhook_endpoints set secret = ${secret}, previous_secret = ${previous} where id = ${id}`;
}
