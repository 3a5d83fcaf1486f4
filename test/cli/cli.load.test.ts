import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** What the service loads at its start costs each process memory and time, also if it is never used. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Prints the packages that are loaded with the command `serve`. */
const LISTS = `
import { registerHooks } from 'node:module';
const packages = new Set();
registerHooks({
  load(url, context, next) {
    const [, name] = /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url) ?? [];
    if (name) packages.add(name);
    return next(url, context);
  },
});
const { createProgram } = await import('./src/cli/program.ts');
await createProgram('serve');
console.log(JSON.stringify([...packages]));
`;

test('the service loads no package at its start that only some settings or requests need', async () => {
  const args = ['--input-type=module', '--eval', LISTS];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT });
  const packages: string[] = JSON.parse(stdout);
  assert.ok(packages.includes('fastify') && packages.includes('pg'), stdout);
  const rare = /^(@aws-sdk|@opentelemetry|@scalar|@scrip\/print|openid-client|pdfkit|prom-client|undici)\b/;
  assert.deepEqual(
    packages.filter((name) => rare.test(name)),
    [],
  );
});
