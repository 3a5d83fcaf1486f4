import { type Sql, sql } from './sql.ts';

/** Every process that uses the embedded database holds this lock, shared, for as long as it does. */
const IN_USE = 7311990002;

export function holdInUse(): Sql {
  return sql`select pg_advisory_lock_shared(${IN_USE}::bigint)`;
}

export function dropInUse(): Sql {
  return sql`select pg_advisory_unlock_shared(${IN_USE}::bigint)`;
}

/** True for the one process that is left. */
export function tryLast(): Sql {
  return sql`select pg_try_advisory_lock(${IN_USE}::bigint) as last`;
}

export function findContents(database: string, role: string): Sql {
  return sql`
select exists (select from pg_database where datname = ${database}) as database,
  exists (select from pg_roles where rolname = ${role}) as role,
  exists (select from pg_roles where rolname = ${role} and rolcanlogin) as login`;
}

/** The password is one of ours, without quotes in it: `create role` takes no parameters. */
export function createLogin(name: string, password: string): Sql {
  return { text: `create role ${name} login password '${plain(password)}'`, values: [] };
}

export function giveLogin(name: string, password: string): Sql {
  return { text: `alter role ${name} login password '${plain(password)}'`, values: [] };
}

function plain(password: string): string {
  if (!/^[\w-]+$/.test(password))
    throw new Error('a password of the embedded database has letters, digits, - and _ only');
  return password;
}

export function createDatabase(name: string): Sql {
  return { text: `create database ${name}`, values: [] };
}
