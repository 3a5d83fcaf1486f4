import { randomBytes } from 'node:crypto';
import { StartError, sqlState } from './errors.ts';
import { connectOwner, type Queries } from './pool.ts';
import { listUnset } from './session.ts';

/**
 * A pooler between Scrip and the server. In session mode it changes nothing. In transaction mode it lends
 * each session of the server from one client to another. Shared sessions can serve calls if the account has
 * the settings of a session, and if the pooler keeps prepared statements. Migrations and background work
 * need a session of their own, for its locks and notifications.
 */

const HOW_TO = 'docs/how-to/deploy.md';

/**
 * Finds out whether a pooler lends the session of one client to another: a second client holds a transaction
 * meanwhile.
 * @returns shared without statements if the pooler does not keep prepared statements
 */
async function probeSessions(url: string): Promise<'own' | 'shared' | 'shared without statements'> {
  const first = await connectOwner(url);
  try {
    const other = await connectOwner(url);
    try {
      // A name of its own: the sessions of a pooler live longer than this process.
      const name = `scrip_${randomBytes(8).toString('hex')}`;
      const readPid = async () =>
        (await first.query<{ pid: number }>({ name, text: 'select pg_backend_pid() as pid' })).rows[0]?.pid;
      const before = await readPid();
      // A pooler that lends this session to the other client lends the first client another one.
      await other.query('begin');
      return (await readPid()) === before ? 'own' : 'shared';
    } finally {
      await other.end();
    }
  } catch (error) {
    if (sqlState(error) === '26000') return 'shared without statements';
    throw error;
  } finally {
    await first.end();
  }
}

/**
 * Checks that the connections of an address have sessions of their own.
 * @param work what needs them
 * @throws StartError if they share sessions
 */
export async function requireOwnSession(url: string, work: string): Promise<void> {
  if ((await probeSessions(url)) === 'own') return;
  throw new StartError(
    `${work} a session of the database, which the pooler lends to others: use the address of the server itself (${HOW_TO})`,
  );
}

/**
 * Checks that calls can be served by the sessions of an address.
 * @param client a connection
 * @throws StartError if they are shared, and the account lacks a setting or the pooler drops prepared
 *   statements
 */
export async function requireSessions(client: Queries, url: string): Promise<void> {
  const sessions = await probeSessions(url);
  if (sessions === 'own') return;
  if (sessions === 'shared without statements')
    throw new StartError(
      `the pooler lends sessions to other clients and drops prepared statements: set pool_mode = session, or max_prepared_statements from PgBouncer 1.21 (${HOW_TO})`,
    );
  const unset = await client.query<{ name: string }>(listUnset());
  if (unset.length === 0) return;
  throw new StartError(
    `the pooler lends sessions to other clients, so the account needs its settings by \`alter role … set\`: ${unset.map(({ name }) => name).join(', ')} (${HOW_TO})`,
  );
}
