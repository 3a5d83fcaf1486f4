import { type Sql, sql } from '../db/sql.ts';

export type PasskeyRow = {
  readonly id: string;
  readonly user_id: number;
  readonly name: string;
  readonly public_key: Buffer;
  readonly counter: bigint;
  readonly transports: string[];
  readonly created_at: Date;
  readonly last_used_at: Date | null;
};

export function findPasskey(id: string): Sql {
  return sql`select * from passkeys where id = ${id}`;
}

export function listPasskeyRows(userId: number): Sql {
  return sql`select * from passkeys where user_id = ${userId} order by created_at, id limit 100`;
}

export function insertPasskey(passkey: {
  readonly id: string;
  readonly userId: number;
  readonly name: string;
  readonly publicKey: Buffer;
  readonly counter: number;
  readonly transports: readonly string[];
  readonly now: Date;
}): Sql {
  const { id, userId, name, publicKey, counter, transports, now } = passkey;
  return sql`
insert into passkeys (id, user_id, name, public_key, counter, transports, created_at)
values (${id}, ${userId}, ${name}, ${publicKey}, ${counter}, ${transports}, ${now})
on conflict do nothing returning id`;
}

/** Writes down a use; no row where another one came between. */
export function usePasskey(id: string, before: bigint, counter: number, now: Date): Sql {
  return sql`
update passkeys set counter = ${counter}, last_used_at = ${now} where id = ${id} and counter = ${before}
  returning id`;
}

export function deletePasskey(userId: number, id: string): Sql {
  return sql`delete from passkeys where user_id = ${userId} and id = ${id} returning name`;
}
