#!/usr/bin/env node
// The published package runs dist/. In the repository the sources run, without a build: by this Node if
// it strips types, else by the one of the repository's lockfile.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const STRIPS_TYPES_SINCE = 24;
const source = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const built = new URL('../dist/main.js', import.meta.url);

if (!existsSync(source)) await import(built.href);
else if (Number.parseInt(process.versions.node, 10) >= STRIPS_TYPES_SINCE) await import('../src/main.ts');
else {
  const node = fileURLToPath(
    new URL(`../../node_modules/node-linux-${process.arch}/bin/node`, import.meta.url),
  );
  process.exitCode = spawnSync(node, [source, ...process.argv.slice(2)], { stdio: 'inherit' }).status ?? 1;
}
