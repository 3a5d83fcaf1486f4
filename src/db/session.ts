import type pg from 'pg';
import { StartError } from './errors.ts';
import { raw, type Sql, sql } from './sql.ts';

/**
 * The role of the service. It cannot change the schema, and writes vouchers and the journal only through the
 * functions of sql/.
 */
export const SERVICE_ROLE = 'scrip_service';

/**
 * The settings of every session of the service. If the account has them by `alter role … set` (behind a
 * pooler), no statement is needed. `pg_temp` is last in the path, so that no temporary table hides a table of
 * the books. No statement waits for a lock longer than a call of a till may take, not even background work
 * whose time limit is two hours. Long lists must be read along an index: without statistics of a new table,
 * the planner would sort the rest of the list for each page. A scan that is turned off has a very high cost,
 * for which PostgreSQL would compile (JIT) the statements of the functions in each call: ten times the
 * processor time of a redemption.
 */
export const SESSION: Readonly<Record<string, string>> = {
  role: SERVICE_ROLE,
  search_path: 'scrip, pg_temp',
  TimeZone: 'UTC',
  statement_timeout: '15s',
  lock_timeout: '5s',
  idle_in_transaction_session_timeout: '15s',
  client_connection_check_interval: '2s',
  enable_bitmapscan: 'off',
  jit: 'off',
};

/**
 * Compares the current user, because an account that inherits from the role is still a different user.
 */
const UNSET = `from unnest($1::text[], $2::text[]) as s (name, value)
where case s.name when 'role' then current_user <> s.value else current_setting(s.name) <> s.value end`;

/** Lists the settings that a session of this account lacks. */
export function listUnset(): Sql {
  return { text: `select s.name ${UNSET}`, values: [Object.keys(SESSION), Object.values(SESSION)] };
}

/** Sets those settings of a session that it lacks. */
export async function configure(
  client: pg.ClientBase,
  session: Readonly<Record<string, string>>,
): Promise<void> {
  await client.query(`select set_config(s.name, s.value, false) ${UNSET}`, [
    Object.keys(session),
    Object.values(session),
  ]);
}

/**
 * Lets a transaction read for longer than a request may, and along indexes that only a bitmap can use. It
 * writes nothing.
 */
export async function readLong(tx: Owner, limit: '10min' | '2h'): Promise<void> {
  await tx.query(sql`set transaction read only`);
  await tx.query(raw(`set local statement_timeout = '${limit}'`));
  await tx.query(sql`set local enable_bitmapscan = on`);
}

type Owner = { query<Row>(statement: Sql): Promise<Row[]> };

/** Checks that no process of the service uses the database. @throws StartError if one does */
export async function requireStopped(owner: Owner): Promise<void> {
  const [sessions] = await owner.query<{ count: number }>(sql`
    select count(*)::int as count from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and application_name like 'scrip%'
      and application_name not in ('scrip-owner', 'scrip-embedded')`);
  if (sessions && sessions.count > 0)
    throw new StartError(
      `Scrip works on this database (${sessions.count} connections): stop \`scrip serve\` and \`scrip work\` everywhere first`,
    );
}
