import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { findUndecidedLicenses } from './licenses.ts';
import { findSecrets } from './secrets.ts';

/** The conditions of a release. */

const ROOT = new URL('../', import.meta.url);
/** Packages with a manifest of their own for the registry. The others get theirs when they are staged. */
const MANIFESTS = ['sdk', 'conformance', 'verifier'] as const;
/** Stands where an address of the project belongs that nobody has decided on yet; .invalid never exists (RFC 2606). */
const PLACEHOLDER = /\bscrip\.invalid\b/;
const PLACES = [
  'package.json',
  'SECURITY.md',
  'CODE_OF_CONDUCT.md',
  ...MANIFESTS.map((name) => `${name}/package.json`),
];

const read = (path: string) => readFile(new URL(path, ROOT), 'utf8');
const git = async (...args: string[]) =>
  (await promisify(execFile)('git', args, { cwd: ROOT })).stdout.trim();

type Package = { version: string; repository?: { url: string }; bugs?: { url: string }; homepage?: string };

/** @returns the problems, a line each; empty if the release may be made */
export async function findProblems(): Promise<string[]> {
  const problems: string[] = [];
  for (const path of PLACES)
    if (PLACEHOLDER.test(await read(path)))
      problems.push(`${path} holds a placeholder: put the project's address in`);
  const { version } = JSON.parse(await read('package.json')) as Package;
  for (const name of MANIFESTS) {
    const own = JSON.parse(await read(`${name}/package.json`)) as Package;
    if (own.version !== version)
      problems.push(`${name}/package.json has version ${own.version}, not ${version}`);
    if (!own.repository?.url || !own.bugs?.url || !own.homepage)
      problems.push(`${name}/package.json lacks repository, bugs or homepage`);
  }
  if (!new RegExp(`^## .*${version.replaceAll('.', '\\.')}`, 'm').test(await read('CHANGELOG.md')))
    problems.push(`CHANGELOG.md has no entry for ${version}`);
  for (const each of await findSecrets()) problems.push(`the history holds a secret: ${each}`);
  for (const each of await findUndecidedLicenses())
    problems.push(`the license of ${each} was not decided on`);
  if ((await git('status', '--porcelain')) !== '') problems.push('the work tree has changes: commit them');
  if ((await git('tag', '--list', `v${version}`)) !== '') problems.push(`v${version} was released already`);
  return problems;
}
