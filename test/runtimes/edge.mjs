import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { SourceTextModule } from 'node:vm';
import { EdgeVM } from '@edge-runtime/vm';

/**
 * The edge runtime of Vercel: a context with web standards and no API of Node, into which the modules are
 * loaded.
 */

const [, , settings, folder] = process.argv;
const { context } = new EdgeVM();
const modules = new Map();

async function read(path) {
  return new SourceTextModule(await readFile(path, 'utf8'), { context, identifier: path });
}

/** Loads each module once, even for concurrent imports. */
function load(path) {
  const module = modules.get(path) ?? read(path);
  modules.set(path, module);
  return module;
}

const main = join(folder, 'node_modules/@scrip/client/dist/index.js');
const program = await load(join(folder, 'use.mjs'));
await program.link((specifier, { identifier }) =>
  load(specifier.startsWith('.') ? join(dirname(identifier), specifier) : main),
);
await program.evaluate();
console.log(JSON.stringify(await program.namespace.use(JSON.parse(settings), String)));
