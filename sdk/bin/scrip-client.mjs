#!/usr/bin/env node
// The published package runs dist/. In the repository the sources run, without a build: by this Node if
// it strips types, else by the one of the repository's lockfile.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const STRIPS_TYPES_SINCE = 24;
const source = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));
const built = new URL('../dist/cli/main.js', import.meta.url);
const own = fileURLToPath(new URL(`../../node_modules/node-linux-${process.arch}/bin/node`, import.meta.url));

if (!existsSync(source)) await import(built.href);
else if (Number.parseInt(process.versions.node, 10) >= STRIPS_TYPES_SINCE) await import('../src/cli/main.ts');
else if (existsSync(own)) {
  const child = spawn(own, [source, ...process.argv.slice(2)], { stdio: 'inherit' });
  // Ctrl-C at the terminal reaches the child by itself; other signals are passed on.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => signal === 'SIGINT' || child.kill(signal));
  child.on('exit', (code, signal) => {
    process.exitCode = signal ? 1 : (code ?? 1);
  });
} else if (existsSync(built)) await import(built.href);
else {
  process.stderr.write('scrip-client: run npm ci first, or npm run build -w sdk\n');
  process.exitCode = 1;
}
