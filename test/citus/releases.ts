import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { migrate } from '../../src/db/migrate.ts';
import { splitStatements } from '../../src/db/sql.ts';

const MIGRATIONS = fileURLToPath(new URL('../../sql/', import.meta.url));

/**
 * Prepares releases whose migration replaces every function by the same one, in the form for one server, with
 * the number of the release at its end.
 * @param folder for their files
 * @returns a function that migrates a database to the next of these releases
 */
export async function prepareReleases(folder: string): Promise<(url: string) => Promise<void>> {
  await cp(MIGRATIONS, folder, { recursive: true });
  const names = (await readdir(folder)).filter((name) => /^\d{3}-/.test(name)).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  const functions = splitStatements(texts.join('\n')).flatMap((statement) =>
    /^create (or replace )?function /i.test(statement)
      ? [statement.replace(/^create (or replace )?/i, 'create or replace ')]
      : [],
  );
  let release = 0;
  return async (url) => {
    release++;
    const marked = functions.map((each) => `${each.replace(/\nend \$\$/, `\n-- release ${release}$&`)};`);
    const version = String(names.length + release).padStart(3, '0');
    await writeFile(join(folder, `${version}-again.sql`), ['-- Works from: 001', ...marked].join('\n'));
    await migrate(url, undefined, undefined, pathToFileURL(`${folder}/`));
  };
}
