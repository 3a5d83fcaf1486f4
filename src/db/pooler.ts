import { StartError } from './errors.ts';
import { openOwner, type Queries } from './pool.ts';
import { sql } from './sql.ts';

/**
 * Refuses a pooler that lends the sessions of the server from one client to another: the role, prepared
 * statements and locks of Scrip are those of a session.
 * @param first a connection; another one is opened, and holds a transaction meanwhile
 * @throws StartError where the two shared a session
 */
export async function requireSession(first: Queries, url: string): Promise<void> {
  const pid = await pidOf(first);
  const other = await openOwner(url);
  try {
    await other.query({ text: 'begin', values: [] });
    // A pooler that lent this session to the other connection gives the first one another session.
    if ((await pidOf(first)) === pid) return;
  } finally {
    await other.close();
  }
  throw new StartError(
    'the pooler before the database lends sessions from one client to another: set pool_mode = session (docs/how-to/deploy.md)',
  );
}

async function pidOf(connection: Queries): Promise<number | undefined> {
  const [row] = await connection.query<{ pid: number }>(sql`select pg_backend_pid() as pid`);
  return row?.pid;
}
