import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, chown, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { newKeyRing } from '../../src/keyring/file.ts';
import { folderOf } from '../support/folder.ts';
import { emptyDatabase, testDatabase } from '../support/harness.ts';
import { ENVIRONMENT, MAIN, runScrip } from '../support/scrip.ts';
import { until } from '../support/until.ts';

/** Other accounts may be able to write to the folder in which a command is run, or to one above it. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);

/** JavaScript that packages and tools look for in the current folder. */
const CODE: readonly string[] = [
  ...['.scriprc.js', 'scrip.config.js', 'scrip.config.cjs', 'scrip.config.ts', '.config.js', '.config.cjs'],
  ...['node_modules/pg/index.js', 'node_modules/pg-native/index.js'],
];
/** Settings that are none: a program that reads them fails. */
const SETTINGS = [
  ...['package.json', '.scriprc', '.config.json'],
  ...['crontab', 'tsconfig.json', '.npmrc', '.env', '.pgpass', 'openssl.cnf', 'node.config.json'],
];

/** A folder of an attacker, below another one of the same kind. Code that runs leaves a file behind. */
async function hostileFolder(t: TestContext): Promise<{ folder: string; wasRun: () => Promise<boolean> }> {
  const above = folderOf(t);
  const trace = join(above, 'code-was-run');
  const folder = join(above, 'current');
  // Broken settings in the current folder would stop a search before it runs code.
  for (const [place, names] of [
    [above, [...CODE, ...SETTINGS]],
    [folder, CODE],
  ] as const) {
    for (const name of names) {
      const file = join(place, name);
      await mkdir(dirname(file), { recursive: true });
      const code = `require('node:fs').writeFileSync(${JSON.stringify(trace)}, ''); throw new Error('attack');`;
      await writeFile(file, CODE.includes(name) ? code : '{ broken');
    }
  }
  const wasRun = () =>
    access(trace).then(
      () => true,
      () => false,
    );
  return { folder, wasRun };
}

test('no module and no package reads anything outside the installation when it is loaded', async (t) => {
  const { folder } = await hostileFolder(t);
  const node = ['--permission', `--allow-fs-read=${ROOT}`, join(ROOT, 'test/support/load-everything.ts')];
  const { stdout } = await run(process.execPath, node, { cwd: folder, env: { PATH: ENVIRONMENT['PATH'] } });
  const [modules = 0, packages = 0] = stdout.split(' ').map(Number);
  assert.ok(modules > 200 && packages > 30, stdout);
});

test('the check of the current folder notices a module that reads it', async (t) => {
  const { folder } = await hostileFolder(t);
  const reading = join(folder, 'reading.mjs');
  await writeFile(reading, "import { readFileSync } from 'node:fs'; readFileSync('package.json');");
  const node = ['--permission', `--allow-fs-read=${ROOT}`, `--allow-fs-read=${reading}`, reading];
  await assert.rejects(run(process.execPath, node, { cwd: folder }), /ERR_ACCESS_DENIED/);
});

test('commands run no code of the current folder, or of a folder above it', async (t) => {
  const { folder, wasRun } = await hostileFolder(t);
  const { url } = await emptyDatabase(t);
  const data = folderOf(t);
  const settings = {
    SCRIP_DATABASE_URL: url,
    SCRIP_DATA_DIR: data,
    SCRIP_PORT: '0',
    SCRIP_LOG_LEVEL: 'warn',
  };
  const options = { cwd: folder, env: { ...ENVIRONMENT, ...settings } };
  const scrip = (...args: string[]) => run(process.execPath, [MAIN, ...args], options);
  await scrip('migrate');
  await scrip('merchant', 'create', '--name', 'Kiosk', '--float', '10');
  for (const command of [['--help'], ['batch', 'list'], ['reconcile'], ['doctor'], ['job', 'list']])
    await scrip(...command);
  for (const [command, ready] of [
    [['serve', '--processes', '1'], /serves http/],
    [['work'], /"working"/],
  ] as const) {
    const env = { ...options.env, SCRIP_LOG_LEVEL: 'info' };
    const child = execFile(process.execPath, [MAIN, ...command], { ...options, env });
    let printed = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (text: string) => {
        printed += text;
      });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    await until(`scrip ${command[0]} runs`, () => {
      assert.equal(child.exitCode, null, printed);
      return ready.test(printed);
    });
    child.kill('SIGTERM');
    assert.equal(await ended, 0, printed);
  }
  assert.equal(await wasRun(), false);
});

test('a data folder or a key ring of another account in the current folder is refused', async (t) => {
  // Only root can give files away; other accounts find those of root.
  const isRoot = process.getuid?.() === 0;
  const data = folderOf(t);
  const { url } = await testDatabase(t);
  if (!isRoot) return assert.equal((await runScrip({ SCRIP_DATA_DIR: '/' }, 'db', 'url')).status, 5);
  const ring = join(data, 'keys');
  await writeFile(ring, newKeyRing(), { mode: 0o644 });
  await chown(ring, 1, 1);
  const elsewhere = await runScrip({ SCRIP_DATABASE_URL: url, SCRIP_DATA_DIR: data }, 'merchant', 'list');
  assert.deepEqual([elsewhere.status, elsewhere.out], [5, '']);
  assert.match(elsewhere.err, /^scrip: the key file \S+ belongs to another user \(\w+\)/);
  await mkdir(join(data, 'postgres'));
  const planted = { port: 1, ownerPassword: 'aa', servicePassword: 'bb' };
  await writeFile(join(data, 'postgres', 'scrip.json'), JSON.stringify(planted));
  await chown(data, 1, 1);
  for (const command of [
    ['db', 'url'],
    ['backup', join(data, 'b')],
  ]) {
    const { status, out, err } = await runScrip({ SCRIP_DATA_DIR: data }, ...command);
    assert.deepEqual([status, out], [5, '']);
    assert.match(err, /^scrip: the data folder \S+ belongs to another user \(\w+\)/);
  }
});
