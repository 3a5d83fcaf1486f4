import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openOwner } from '../../src/db/pool.ts';
import { startTestService, type TestService } from '../support/harness.ts';
import { asOwner } from '../support/owner.ts';
import { until } from '../support/until.ts';

/**
 * An upgrade while the service runs: the next release, which is this one with one more migration, and this
 * one work on the same database.
 */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Adds a column to a table that every request uses, and a table. */
const EXPANDS = `-- A test: what a release adds.
-- Works from: NEWEST
alter table merchants add column motto text;
create table mottos (id integer primary key, text text not null);
`;
const CONTRACTS = `-- A test: what a release takes away.
drop table mottos;
alter table merchants drop column motto;
`;
const HANGS = `-- A test: a migration that takes long.
-- Works from: NEWEST
alter table merchants add column slogan text;
select pg_sleep(600);
`;

let folder: string;
let old: TestService;
let newest: number;
const children: ChildProcess[] = [];

before(async () => {
  old = await startTestService();
  const [row] = await asOwner<{ newest: number }>(
    old.url,
    'select max(version) as newest from scrip.migrations',
  );
  newest = row?.newest ?? assert.fail();
  folder = await mkdtemp(join(tmpdir(), 'scrip-next-'));
  for (const name of ['src', 'sql', 'package.json'])
    await cp(join(ROOT, name), join(folder, name), { recursive: true });
  for (const name of ['node_modules', 'docs', 'console', 'embedded', 'print'])
    await symlink(join(ROOT, name), join(folder, name));
});

after(async () => {
  await Promise.all(children.map(stop));
  await old.stop();
  await rm(folder, { recursive: true, force: true });
});

const numbered = (ahead: number) => String(newest + ahead).padStart(3, '0');

const addMigration = (ahead: number, text: string) =>
  writeFile(join(folder, 'sql', `${numbered(ahead)}-next.sql`), text.replace('NEWEST', numbered(0)));

function start(root: string, ...args: string[]): ChildProcess & { out(): string } {
  const child = spawn(process.execPath, [join(root, 'src', 'main.ts'), ...args], {
    env: {
      PATH: process.env['PATH'],
      SCRIP_DATABASE_URL: old.url,
      SCRIP_KEYS: old.keys,
      SCRIP_PORT: '0',
      SCRIP_LOG_LEVEL: 'warn',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  let out = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text) => {
      out += text;
    });
  return Object.assign(child, { out: () => out });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

/** Starts the release in a folder. @returns its address */
async function serve(root: string): Promise<string> {
  const child = start(root, 'serve', '--no-work', '--processes', '1');
  return until('the service serves', () => {
    assert.equal(child.exitCode, null, child.out());
    return /serves (\S+)/.exec(child.out())?.[1];
  });
}

async function run(root: string, ...args: string[]): Promise<{ status: number | null; out: string }> {
  const child = start(root, ...args);
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, out: child.out() };
}

describe('an upgrade', () => {
  it('goes one process at a time: both releases serve, and the older one can be started again', async () => {
    const merchant = await old.createMerchant({ float: 100_000n });
    const order = async (address: string, reference: string) => {
      const response = await fetch(`${address}/api/v2/vouchers`, {
        method: 'POST',
        headers: { authorization: merchant.authorization, 'content-type': 'application/json' },
        body: JSON.stringify({ quantity: 1, amount: 10, reference }),
      });
      const { statusCode, data } = (await response.json()) as {
        statusCode: string;
        data: { transactionId: string };
      };
      return { statusCode, transactionId: data?.transactionId };
    };
    const before = await serve(ROOT);
    const first = await order(before, 'before');
    assert.equal(first.statusCode, '00');

    await addMigration(1, EXPANDS);
    const next = await serve(folder);
    // The process of the older release goes on, one that starts later works too, and all are one service.
    const later = await serve(ROOT);
    for (const address of [before, next, later]) {
      assert.equal((await order(address, `by ${address}`)).statusCode, '00', address);
      assert.deepEqual(await order(address, 'before'), first, 'a replay');
    }
    const reconciled = await run(ROOT, 'reconcile', '--json');
    assert.equal(reconciled.status, 0, reconciled.out);
  });

  it('that was killed has changed nothing, and is done by the next run', async () => {
    await addMigration(2, HANGS);
    const killed = start(folder, 'migrate');
    const owner = await openOwner(old.url);
    const asleep = () =>
      owner.query<{ pid: number }>({
        text: `select pid from pg_stat_activity where datname = current_database()
          and wait_event = 'PgSleep'`,
        values: [],
      });
    try {
      await until('the migration runs', async () => {
        assert.equal(killed.exitCode, null, killed.out());
        return (await asleep()).length > 0;
      });
      killed.kill('SIGKILL');
      // The server notices, and rolls back.
      await until('the migration ends', async () => (await asleep()).length === 0);
    } finally {
      await owner.close();
    }
    assert.deepEqual(await run(ROOT, 'migrate'), { status: 0, out: 'the schema is up to date\n' });
    await addMigration(2, HANGS.replace(/select pg_sleep.*\n/, ''));
    assert.deepEqual(await run(folder, 'migrate'), {
      status: 0,
      out: `${numbered(2)}-next.sql\nthe schema is up to date\n`,
    });
  });

  it('with a migration that removes a table is refused by the older release in one line', async () => {
    await addMigration(3, CONTRACTS);
    assert.equal((await run(folder, 'migrate')).status, 0);
    const { status, out } = await run(ROOT, 'serve');
    assert.equal(status, 5);
    assert.match(out, /^scrip: the database has a newer schema \(\d+-next\.sql\) than this version .*\n$/);
  });
});
