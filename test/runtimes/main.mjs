import { use } from './use.mjs';

/**
 * On runtimes with a command line: settings are the last argument, and what happened is one line on
 * standard output.
 */

const { Deno, Bun, process } = globalThis;
const [settings] = (Deno ? Deno.args : process.argv).slice(-1);
const format = Deno?.inspect ?? Bun?.inspect ?? (await import('node:util')).inspect;
const happened = await use(JSON.parse(settings), (value) => format(value, { depth: 9, showHidden: true }));
console.log(JSON.stringify(happened));
