/** Loads every module of the service and every package that it depends on, and prints their number. */

import { globSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const ROOT = join(import.meta.dirname, '../..');
/** The program itself, and threads, run when they are loaded. */
const RUNS = /^src\/main\.ts$|\.thread\.ts$/;
/** Packages without a module: a program, and fonts. */
const NO_MODULE = /^(node|dejavu-fonts-ttf)(-|$)/;

const modules = ['src', 'embedded', 'print'].flatMap((folder) =>
  globSync(`${folder}/**/*.ts`, { cwd: ROOT }).filter((path) => !RUNS.test(path)),
);
for (const path of modules) await import(pathToFileURL(join(ROOT, path)).href);

const packages = ['.', 'embedded', 'print'].flatMap((folder) => {
  const manifest = join(ROOT, folder, 'package.json');
  const { dependencies } = JSON.parse(readFileSync(manifest, 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const { resolve } = createRequire(manifest);
  return Object.keys(dependencies)
    .filter((name) => !NO_MODULE.test(name))
    .map((name) => resolve(name));
});
for (const path of packages) await import(pathToFileURL(path).href);

process.stdout.write(`${modules.length} ${packages.length}\n`);
