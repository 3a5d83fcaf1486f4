#!/bin/sh
':' //; here=$(dirname "$(readlink -f "$0")"); node="$here/../node_modules/node/bin/node"; [ -x "$node" ] && exec "$node" "$here/../src/main.ts" "$@"; exec node "$here/scrip.cjs" "$@"
// The line above is for the shell, which ends there: run directly, this file becomes the project's own
// Node in one step, so that signals and the exit status are the program's. What follows is for
// `node bin/scrip.cjs`, whatever Node that is.
'use strict';
const { spawn } = require('node:child_process');
const { existsSync } = require('node:fs');
const { join } = require('node:path');

const OLDEST_MAJOR = 24;
const main = join(__dirname, '..', 'src', 'main.ts');
const own = join(__dirname, '..', 'node_modules', 'node', 'bin', 'node');

if (Number(process.versions.node.split('.')[0]) >= OLDEST_MAJOR) {
  import(main);
} else if (existsSync(own)) {
  const child = spawn(own, [main, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(signal ? 1 : code));
} else {
  process.stderr.write(`scrip: Node ${OLDEST_MAJOR} is needed, and this is ${process.version}: run npm ci, which brings it\n`);
  process.exitCode = 1;
}
