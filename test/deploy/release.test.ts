import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { dateEntry, isOpen } from '../../release/changelog.ts';
import { findPlaceholders, findProblems } from '../../release/check.ts';
import { findUndecidedLicenses } from '../../release/licenses.ts';
import { findChangedMigrations, freezeMigrations } from '../../release/migrations.ts';
import { findSecret } from '../../release/secrets.ts';
import { pack, strip } from '../../release/stage.ts';
import { folderOf } from '../support/folder.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);
const ABOUT = '(LICENSE|README|CHANGELOG|SECURITY)(\\.md)?|package\\.json';
/** The files of the packages: no test, no TypeScript, no local file. */
const ALLOWED = {
  service: new RegExp(
    `^(${ABOUT}|bin/scrip\\.cjs|src/[\\w./-]+\\.(js|txt)|sql/[\\w./-]+\\.sql|console/dist/.+|docs/(reference|site/dist)/.+)$`,
  ),
  embedded: new RegExp(`^(${ABOUT}|[a-z0-9-]+\\.js)$`),
  print: new RegExp(`^(${ABOUT}|[a-z0-9-]+(\\.thread)?\\.js)$`),
};

test('every dependency has a license that Scrip may be shipped with', async () => {
  assert.deepEqual(await findUndecidedLicenses(), []);
});

test('a release with placeholders in it is not published', async () => {
  const missing = await findPlaceholders();
  for (const path of ['package.json', 'SECURITY.md', 'CODE_OF_CONDUCT.md', 'sdk/package.json'])
    assert.ok(
      missing.some((each) => each.startsWith(`${path} holds a placeholder`)),
      path,
    );
});

test('nothing of the packages or of the history keeps a release back', async () => {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  const problems = await findProblems(version);
  assert.deepEqual(
    problems.filter((each) => /lacks|has version|secret|license/.test(each)),
    [],
  );
});

test('no migration of a release was changed since', async () => {
  assert.deepEqual(await findChangedMigrations(), []);
});

test('a migration that was changed or removed after its release is found, and a new one is not', async (t) => {
  const folder = pathToFileURL(`${folderOf(t)}/`);
  const write = (name: string, text: string) => writeFile(new URL(name, folder), text);
  const released = new URL('migrations.sha256', folder);
  for (const name of ['001-core.sql', '002-bank.sql', '003-till.sql']) await write(name, `-- ${name}`);
  assert.deepEqual(await findChangedMigrations(folder, released), []);
  await freezeMigrations(folder, released);
  await write('004-new.sql', '-- New.');
  assert.deepEqual(await findChangedMigrations(folder, released), []);
  await write('001-core.sql', '-- changed');
  await rm(new URL('003-till.sql', folder));
  assert.deepEqual(await findChangedMigrations(folder, released), [
    'sql/001-core.sql was changed after its release: add a migration instead',
    'sql/003-till.sql was changed after its release: add a migration instead',
  ]);
});

test('a release dates its entry of the changelog, and no other', () => {
  const text =
    '# Changelog\n\n## 0.2.0\n\nNot released yet. Faster.\n\n## 0.1.0 (2026-11-29)\n\nThe first.\n';
  assert.ok(isOpen(text, '0.2.0'));
  assert.ok(!isOpen(text, '0.1.0') && !isOpen(text, '0.3.0'));
  assert.equal(
    dateEntry(text, '0.2.0', '2027-01-31'),
    '# Changelog\n\n## 0.2.0 (2027-01-31)\n\nFaster.\n\n## 0.1.0 (2026-11-29)\n\nThe first.\n',
  );
});

test('the service is published as JavaScript, and runs from node_modules', async (t) => {
  const folder = folderOf(t);
  const modules = join(folder, 'node_modules');
  await mkdir(join(modules, '@scrip'), { recursive: true });
  for (const name of await readdir(join(ROOT, 'node_modules')))
    if (name !== '@scrip' && name !== 'scrip')
      await symlink(join(ROOT, 'node_modules', name), join(modules, name));
  for (const name of ['service', 'embedded', 'print'] as const) {
    const { file, paths } = await pack(name, folder);
    for (const each of ['LICENSE', 'README.md', 'package.json'])
      assert.ok(paths.includes(each), `${name}: ${each}`);
    const foreign = paths.filter((path) => !ALLOWED[name].test(path));
    assert.deepEqual(foreign, []);
    const target = join(modules, '@scrip', name);
    await mkdir(target);
    await run('tar', ['-xzf', file, '-C', target, '--strip-components=1']);
  }
  const scrip = (...args: string[]) =>
    run(join(modules, '@scrip', 'service', 'bin', 'scrip.cjs'), args, {
      env: { PATH: process.env['PATH'] },
    });
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  assert.equal((await scrip('--version')).stdout, `${version}\n`);
  // Everything is loaded: the help lists all commands.
  assert.match((await scrip('--help')).stdout, /reconcile/);
  const service = await import(join(modules, '@scrip', 'service', 'src', 'http', 'docs.js'));
  assert.equal(typeof service.serveDocs, 'function');
});

test('imports and URLs of sources end in .js in a package, and other strings stay', () => {
  const text =
    "import { a } from '../a.ts';\nnew Worker(new URL('../b.ts', import.meta.url));\nconst c: string = 'd.ts';";
  assert.equal(
    strip(text),
    "import { a } from '../a.js';\nnew Worker(new URL('../b.js', import.meta.url));\nconst c         = 'd.ts';",
  );
});

test('a secret in the history is found by its form, and an example is not', () => {
  const long = 'x'.repeat(43);
  for (const [line, what] of [
    [`KEYS=kt0123456789a:${long}`, 'a key ring'],
    [`curl -u key_0123456789abcdef:${long}`, 'an API key with its secret'],
    [`token: scrop_${long}`, 'a token of an operator'],
    [`whsec_${'A'.repeat(32)}`, 'a webhook secret'],
    [`postgres://scrip:${'hunter'.repeat(3)}@db/scrip`, 'the password of a database'],
    [`ghp_${'a'.repeat(36)}`, 'a token of GitHub'],
    [`AKIA${'ABCD'.repeat(4)}`, 'a key of AWS'],
  ] as const)
    assert.equal(findSecret(line), what, line);
  for (const line of [
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    'postgres://scrip_owner:…@db.example.com:5432/scrip',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a line of a source.
    'postgres://${user}:${password}@host',
    'key_…:…',
  ])
    assert.equal(findSecret(line), undefined, line);
});
