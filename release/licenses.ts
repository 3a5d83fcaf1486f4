import { readFile } from 'node:fs/promises';

/** Compares the licenses of installed packages with those that Scrip may be shipped with. */

const ROOT = new URL('../', import.meta.url);
/** Permissive ones. Anything else needs a decision first. */
const ALLOWED = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'Python-2.0',
  'Unlicense',
  'Zlib',
]);
/** Decided one by one, with the reason. */
const DECIDED: Readonly<Record<string, string>> = {
  'dejavu-fonts-ttf': 'the license of the fonts permits their use in documents; its package names no SPDX id',
  argparse: 'PSF-2.0, permissive; for the command of markdown-it, which is not used',
  '@resvg/resvg-wasm': 'MPL-2.0, unchanged, as a package of its own',
  'axe-core': 'MPL-2.0, used to test only, unchanged',
  lightningcss: 'MPL-2.0, used to build only, unchanged',
  'png-js': 'MIT, by its file LICENSE; its package names no SPDX id',
};

type Locked = {
  readonly version?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly license?: unknown;
};

/**
 * Lists the packages that are shipped, or used to build, under a license that was not decided on.
 * @returns `name: license` of each; empty if all is well
 */
export async function findUndecidedLicenses(): Promise<string[]> {
  const { packages } = JSON.parse(await readFile(new URL('package-lock.json', ROOT), 'utf8')) as {
    packages: Record<string, Locked>;
  };
  const found: string[] = [];
  for (const [path, { link, license }] of Object.entries(packages)) {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    if (
      link ||
      !path.includes('node_modules/') ||
      Object.hasOwn(DECIDED, name) ||
      name.startsWith('lightningcss-')
    )
      continue;
    // Packages for other platforms are not installed; the lockfile names their license.
    const named = typeof license === 'string' ? license : await readLicense(path);
    if (!isAllowed(named)) found.push(`${name}: ${named}`);
  }
  return found;
}

async function readLicense(path: string): Promise<string> {
  const text = await readFile(new URL(`${path}/package.json`, ROOT), 'utf8').catch(() => '{}');
  const { license } = JSON.parse(text) as { license?: string | { type?: string } };
  return (typeof license === 'object' ? license.type : license) ?? 'not named';
}

/** An expression such as `(MIT OR CC0-1.0)`: one of those joined by OR is enough, all of those joined by AND are needed. */
function isAllowed(expression: string): boolean {
  return expression
    .replace(/[()]/g, '')
    .split(/ OR /i)
    .some((each) => each.split(/ AND /i).every((name) => ALLOWED.has(name.trim())));
}
