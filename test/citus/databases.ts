import { randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { openDatabase } from '../../src/db/pool.ts';
import { ensureDefaultProduct } from '../../src/products/products.ts';
import { type ListeningService, startListening, type TestService } from '../support/harness.ts';
import { asOwner, dropDatabase } from '../support/owner.ts';

/** Databases of the cluster that the run has started (test/support/server.ts). */

const nodes = () => [
  process.env['SCRIP_TEST_URL'] ?? '',
  ...(process.env['SCRIP_TEST_WORKERS'] ?? '').split(' '),
];

/** Runs one or several statements, as the owner. */
export async function executeOn(url: string, text: string): Promise<void> {
  await asOwner(url, text);
}

type EmptyCluster = {
  readonly url: string;
  readonly workers: readonly string[];
  /** Makes the workers known to the coordinator. */
  addWorkers(): Promise<void>;
};

/** A database without a schema on all nodes, which are not connected yet; dropped after the test. */
export async function emptyCluster(t: TestContext): Promise<EmptyCluster> {
  const name = `scrip_empty_${randomBytes(6).toString('hex')}`;
  const urls = nodes().map((node) => Object.assign(new URL(node), { pathname: `/${name}` }).href);
  for (const [index, node] of nodes().entries()) {
    await executeOn(node, `create database ${name}`);
    t.after(() => dropDatabase(node, name));
    await executeOn(urls[index] as string, 'create extension citus');
  }
  const [url = '', ...workers] = urls;
  return {
    url,
    workers,
    async addWorkers() {
      await executeOn(url, `select citus_set_coordinator_host('127.0.0.1', ${new URL(url).port})`);
      for (const worker of workers)
        await executeOn(url, `select citus_add_node('127.0.0.1', ${new URL(worker).port})`);
    },
  };
}

/**
 * Starts a service that listens, on a database that is not a copy of the template.
 * @param before a service whose key ring and clock it takes over
 */
export async function startOn(url: string, before?: TestService): Promise<ListeningService> {
  const db = openDatabase(url, 'scrip-test');
  await ensureDefaultProduct(db, 'USD').finally(() => db.close());
  return startListening({ others: [], ...before, url } as Partial<TestService> as TestService);
}
