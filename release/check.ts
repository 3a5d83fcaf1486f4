import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { isOpen } from './changelog.ts';
import { findUndecidedLicenses } from './licenses.ts';
import { findChangedMigrations } from './migrations.ts';
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

type Package = {
  version: string;
  workspaces?: string[];
  repository?: { url: string };
  bugs?: { url: string };
  homepage?: string;
};
const readPackage = async (folder: string): Promise<Package> =>
  JSON.parse(await read(`${folder}/package.json`));

/** @returns why a release may not be made, a line for each reason; empty if it may */
export async function findProblems(version: string): Promise<string[]> {
  const problems: string[] = [];
  const { workspaces = [] } = await readPackage('.');
  for (const folder of ['.', ...workspaces]) {
    const own = await readPackage(folder);
    if (own.version !== version)
      problems.push(`${folder}/package.json has version ${own.version}, not ${version}`);
  }
  for (const name of MANIFESTS) {
    const own = await readPackage(name);
    if (!own.repository?.url || !own.bugs?.url || !own.homepage)
      problems.push(`${name}/package.json lacks repository, bugs or homepage`);
  }
  if (!isOpen(await read('CHANGELOG.md'), version))
    problems.push(`CHANGELOG.md has no entry for ${version} without a date`);
  problems.push(...(await findChangedMigrations()));
  for (const each of await findSecrets()) problems.push(`the history holds a secret: ${each}`);
  for (const each of await findUndecidedLicenses())
    problems.push(`the license of ${each} was not decided on`);
  if ((await git('status', '--porcelain')) !== '') problems.push('the work tree has changes: commit them');
  if ((await git('tag', '--list', `v${version}`)) !== '') problems.push(`v${version} was released already`);
  return problems;
}

/** @returns why a release may not be published yet, a line for each reason; empty if it may */
export async function findPlaceholders(): Promise<string[]> {
  const problems: string[] = [];
  for (const path of PLACES)
    if (PLACEHOLDER.test(await read(path)))
      problems.push(`${path} holds a placeholder: put the project's address in`);
  return problems;
}
