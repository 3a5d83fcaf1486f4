import { use } from './use.mjs';

/**
 * For runtimes with a command line: the settings are the last argument, and the results are one line on
 * standard output.
 */

const { Deno, Bun, process } = globalThis;
const [settings] = (Deno ? Deno.args : process.argv).slice(-1);
const format = Deno?.inspect ?? Bun?.inspect ?? (await import('node:util')).inspect;
const results = await use(JSON.parse(settings), (value) => format(value, { depth: 9, showHidden: true }));
console.log(JSON.stringify(results));
