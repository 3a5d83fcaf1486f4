import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { openEmbedded } from '../src/db/embedded.ts';
import { migrate } from '../src/db/migrate.ts';
import { openDatabase, openOwner } from '../src/db/pool.ts';
import { createLogger } from '../src/log.ts';
import { ensureDefaultProduct } from '../src/merchants/products.ts';
import { atEnd, opened, temporaryFolder } from './leave-nothing.ts';

type Server = { readonly url: string; close(): Promise<void> };

/** The server that the tests work on, as an account that may create databases. */
async function openServer(): Promise<Server> {
  const given = process.env['SCRIP_DATABASE_URL'];
  if (given) return { url: given, close: async () => {} };
  const folder = await temporaryFolder('scrip-test-');
  const embedded = await opened(
    () => openEmbedded(folder, createLogger('warn')),
    ({ release }) => release(),
  );
  return {
    url: embedded.ownerUrl,
    async close() {
      await embedded.release();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function execute(url: string, text: string): Promise<void> {
  const owner = await openOwner(url);
  await owner.query({ text, values: [] }).finally(() => owner.close());
}

/** Tests move the clock of the service, and most of them not that of the database: those that do check stamps again. */
const WITHOUT_STAMP_CHECK = `
create or replace function scrip.check_stamp(p_stamp timestamptz, p_ids uuid[] default '{}') returns void
language plpgsql as $$ begin end $$`;

/** Makes the database that every test starts from: the schema, and the product that is always there. */
async function createTemplate(url: string, name: string): Promise<void> {
  await execute(url, `create database ${name}`);
  const address = new URL(url);
  address.pathname = `/${name}`;
  await migrate(address.href);
  await execute(address.href, WITHOUT_STAMP_CHECK);
  const db = openDatabase(address.href, 'scrip-test');
  await ensureDefaultProduct(db, 'USD').finally(() => db.close());
}

/** Runs what needs test databases: while it runs, the harness finds the server and the template in the environment. */
export async function withTestServer(run: () => Promise<void>): Promise<void> {
  const server = await openServer();
  const template = `scrip_template_${randomBytes(6).toString('hex')}`;
  const drop = () => execute(server.url, `drop database if exists ${template} with (force)`).catch(() => {});
  const forget = atEnd(drop);
  try {
    await createTemplate(server.url, template);
    process.env['SCRIP_TEST_URL'] = server.url;
    process.env['SCRIP_TEST_TEMPLATE'] = template;
    await run();
  } finally {
    forget();
    await drop();
    await server.close();
  }
}
