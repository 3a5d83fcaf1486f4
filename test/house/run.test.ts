import assert from 'node:assert/strict';
import { chmod, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { launchChromium, whyNoBrowser } from '../support/chromium.ts';
import { whyStale } from '../support/console-build.ts';
import { lastLines } from '../support/last-lines.ts';
import { temporaryFolder } from '../support/leave-nothing.ts';

/** A program that says why it cannot start, and ends. */
async function broken(t: TestContext, says: string): Promise<string> {
  const folder = await temporaryFolder('scrip-browser-');
  t.after(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'chromium');
  await writeFile(path, `#!/bin/sh\necho '${says}' >&2\nexit 127\n`);
  await chmod(path, 0o755);
  return path;
}

test('a browser without its libraries fails with what to install', async (t) => {
  const path = await broken(
    t,
    'chromium: error while loading shared libraries: libnss3.so: cannot open shared object file',
  );
  await assert.rejects(
    whyNoBrowser(async () => path),
    {
      message: `the browser ${path} cannot start: libnss3.so: cannot open shared object file
Install its libraries, as root: npx playwright-core install-deps chromium`,
    },
  );
});

test('a browser that ends at once fails with what to install', async (t) => {
  await assert.rejects(
    launchChromium(await broken(t, 'broken')),
    /cannot start: .+\nInstall a Chromium at \//,
  );
});

test('tests are skipped where no browser is installed for the platform', async () => {
  assert.match(
    String(await whyNoBrowser(async () => undefined)),
    /^no browser is installed for \w+ \w+: put a Ch/,
  );
});

test('the last lines of a run name what was skipped', () => {
  const last = lastLines({ passed: 3, failed: 1, skipped: ['no browser', 'no php', 'no browser'] });
  assert.equal(last, '2 skipped: no browser\n1 skipped: no php\n3 passed, 1 failed\n');
});

test('a console that is older than its sources is named with what to do, before a browser opens it', async (t) => {
  const folder = await temporaryFolder('scrip-built-');
  t.after(() => rm(folder, { recursive: true, force: true }));
  const built = join(folder, 'manifest.json');
  await writeFile(built, '');
  assert.equal(await whyStale(built), undefined);
  await utimes(built, 1, 1);
  assert.match(
    String(await whyStale(built)),
    /^console\/src\/.+ is newer than console\/dist: run npm run build/,
  );
});
