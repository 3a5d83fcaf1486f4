import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';

/**
 * The migrations of releases. A release writes down the digest of each (`sha256sum -c`, in the folder sql/),
 * and from then on none of them is changed: databases were made by them.
 */

const SQL = new URL('../sql/', import.meta.url);
const RELEASED = new URL('migrations.sha256', import.meta.url);
const MIGRATION = /^\d{3}-.*\.sql$/;

/** The digests of all migrations, a line each. */
async function listDigests(folder: URL): Promise<string> {
  const names = (await readdir(folder)).filter((name) => MIGRATION.test(name)).sort();
  const lines = names.map(async (name) => {
    const text = await readFile(new URL(name, folder));
    return `${createHash('sha256').update(text).digest('hex')}  ${name}\n`;
  });
  return (await Promise.all(lines)).join('');
}

/**
 * Compares the migrations with those of the last release.
 * @returns the problems, a line each; empty if all are there unchanged, or nothing was released
 */
export async function findChangedMigrations(folder: URL = SQL, released: URL = RELEASED): Promise<string[]> {
  const list = await readFile(released, 'utf8').catch(() => '');
  const present = new Set((await listDigests(folder)).split('\n'));
  return list
    .split('\n')
    .filter((line) => line !== '' && !present.has(line))
    .map((line) => `sql/${line.split('  ')[1]} was changed after its release: add a migration instead`);
}

/** Writes down that the present migrations are released. */
export async function freezeMigrations(folder: URL = SQL, released: URL = RELEASED): Promise<void> {
  await writeFile(released, await listDigests(folder));
}
