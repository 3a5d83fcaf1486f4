import { execFile } from 'node:child_process';
import { access, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from './leave-nothing.ts';

/** Third-party programs that verify exports. test/verifiers/install.sh installs them. */

const INSTALLED = fileURLToPath(new URL('../verifiers/installed/', import.meta.url));
const PYTHON = { PYTHONPATH: join(INSTALLED, 'python') };
const MINUTES_MAX_MS = 300_000;

/** Checks a document against its schema, and prints the errors. */
const CHECK_SCHEMA = `
import sys
from lxml import etree
schema = etree.XMLSchema(etree.parse(sys.argv[1]))
if not schema.validate(etree.parse(sys.argv[2])): sys.exit(str(schema.error_log))
`;

/**
 * Verifies a text. @returns the errors, '' if there are none; undefined if the verifier is not installed,
 * which the test then prints
 */
export type Verify = (t: TestContext, text: string) => Promise<string | undefined>;

export const beanCheck: Verify = (t, text) =>
  verify(t, text, 'beancount', 'python/beancount', (file) => [
    'python3',
    '-m',
    'beancount.scripts.check',
    '--no-cache',
    file,
  ]);

export const hledgerCheck: Verify = (t, text) =>
  verify(t, text, 'journal', 'hledger/usr/bin/hledger', (file) => {
    return [join(INSTALLED, 'hledger/usr/bin/hledger'), '-f', file, '--strict', 'check'];
  });

/** Checks an ISO 20022 message, such as `camt.053.001.08`. */
export const schemaCheck =
  (message: string): Verify =>
  (t, text) =>
    verify(t, text, 'xml', `schemas/${message}.xsd`, (file) => {
      return ['python3', '-c', CHECK_SCHEMA, join(INSTALLED, `schemas/${message}.xsd`), file];
    });

async function verify(
  t: TestContext,
  text: string,
  extension: string,
  needed: string,
  commandOf: (file: string) => string[],
): Promise<string | undefined> {
  const isInstalled = await access(join(INSTALLED, needed)).then(
    () => true,
    () => false,
  );
  if (!isInstalled) {
    t.diagnostic(`not verified: test/verifiers/install.sh has not installed ${needed}`);
    return undefined;
  }
  const folder = await temporaryFolder('scrip-verify-');
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, `export.${extension}`);
  await writeFile(file, text);
  const [program = '', ...args] = commandOf(file);
  const { promise, resolve } = Promise.withResolvers<string>();
  const env = { ...PYTHON, PATH: process.env['PATH'], LANG: 'C.UTF-8' };
  execFile(program, args, { env, timeout: MINUTES_MAX_MS }, (error, out, err) => {
    resolve(error ? out + err || error.message : '');
  });
  return promise;
}
