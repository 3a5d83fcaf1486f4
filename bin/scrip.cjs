#!/bin/sh
':' //; here=$(dirname "$(readlink -f "$0")"); for own in "$here"/../node_modules/node-linux-*/bin/node "$here"/../../../node-linux-*/bin/node; do [ -x "$own" ] && exec "$own" "$here/scrip.cjs" "$@"; done; exec node "$here/scrip.cjs" "$@"
// The line above is for the shell, which ends there: run directly, this file becomes the project's own
// Node in one step, so that signals and the exit status are the program's. What follows is for
// `node bin/scrip.cjs`, whatever Node that is.
'use strict';
const { spawn } = require('node:child_process');
const { existsSync } = require('node:fs');
const { enableCompileCache } = require('node:module');
const { join } = require('node:path');

const OLDEST_MAJOR = 24;
const main = join(__dirname, '..', 'src', 'main.ts');
// In the project itself, or in one that has Scrip as a dependency.
const own = ['../node_modules', '../../..']
  .map((folder) => join(__dirname, folder, `node-linux-${process.arch}`, 'bin', 'node'))
  .find((path) => existsSync(path));

if (Number(process.versions.node.split('.')[0]) >= OLDEST_MAJOR) {
  // Compiling the source takes a third of a start, and Node's compiler of TypeScript 15 MB as soon as one
  // file is not in the cache, so this file is JavaScript. The cache is in node_modules, which is as safe as
  // the source. Threads and processes find it by the variable. A folder that is read-only stays as it is.
  process.env.NODE_COMPILE_CACHE ??= join(__dirname, '..', 'node_modules', '.cache', 'scrip');
  enableCompileCache();
  import(main);
} else if (own) {
  const child = spawn(own, [__filename, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(signal ? 1 : code));
} else {
  process.stderr.write(`scrip: Node ${OLDEST_MAJOR} is needed, and this is ${process.version}: on Linux npm ci brings it, elsewhere install it first\n`);
  process.exitCode = 1;
}
