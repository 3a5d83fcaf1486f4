import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { SETTINGS } from '../../src/config.ts';
import { folderOf } from '../support/folder.ts';
import { readProgram } from '../support/program.ts';

const FOLDER = new URL('../../deploy/', import.meta.url);
/** The image on which that of Scrip is built. */
const BASE = '$' + '{NODE_IMAGE}$' + '{NODE_DIGEST}';
/** Variables of the files themselves: the proxy's domain and processes, and the folder of nightly backups. */
const OWN = ['SCRIP_DOMAIN', 'SCRIP_UPSTREAMS', 'SCRIP_BACKUPS'];

async function readAll(): Promise<[name: string, text: string][]> {
  const entries = await readdir(FOLDER, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Promise.all(
    files.map(
      async ({ parentPath, name }) =>
        [name, await readFile(`${parentPath}/${name}`, 'utf8')] as [string, string],
    ),
  );
}

test('the files of a deployment name only settings and commands that exist', async () => {
  const known = new Set<string>([...Object.values(SETTINGS).map(({ name }) => name), ...OWN]);
  const words = new Set([...(await readProgram()).keys()].flatMap((name) => name.split(' ')));
  const files = await readAll();
  assert.ok(files.length >= 9);
  for (const [file, text] of files) {
    for (const [name] of text.matchAll(/\bSCRIP_[A-Z_]+/g))
      assert.ok(known.has(name), `${file} names ${name}`);
    for (const [, command = ''] of text.matchAll(/bin\/scrip\.cjs ([a-z]+)/g))
      assert.ok(words.has(command), `${file} runs ${command}`);
  }
});

test('the command of a machine with systemd has the account and the settings of the unit', async () => {
  const [unit, command] = (await Promise.all(
    ['scrip.service', 'scrip'].map((name) => readFile(new URL(`systemd/${name}`, FOLDER), 'utf8')),
  )) as [string, string];
  const settings = /^Environment=(.*)$/m.exec(unit)?.[1]?.split(' ') ?? [];
  const expected = [
    ...settings.map((setting) => `--setenv=${setting}`),
    `--property=EnvironmentFile=${/^EnvironmentFile=(.*)$/m.exec(unit)?.[1]}`,
    `--property=UMask=${/^UMask=(.*)$/m.exec(unit)?.[1]}`,
    `--uid=${/^User=(.*)$/m.exec(unit)?.[1]}`,
    `--gid=${/^Group=(.*)$/m.exec(unit)?.[1]}`,
    `${/^ExecStart=(.*) serve$/m.exec(unit)?.[1]} "$@"`,
  ];
  assert.equal(settings.length, 2);
  for (const option of expected) assert.ok(command.includes(` ${option}`), option);
});

test('each image of a deployment has an exact tag, and that of Scrip is this version', async () => {
  const { version } = JSON.parse(await readFile(new URL('../package.json', FOLDER), 'utf8'));
  const images = (await readAll()).flatMap(([file, text]) =>
    [...text.matchAll(/(?:^ *image: |^FROM |^ARG NODE_IMAGE=)(\S+)/gm)].map(([, image = '']) => ({
      file,
      image,
    })),
  );
  assert.ok(images.length >= 10);
  for (const { file, image } of images.filter(({ image }) => image !== BASE)) {
    const [, name, tag] =
      /^([a-z/]+):v?(\d+\.\d+(?:\.\d+)?[\w-]*)(?:\$\{[A-Z]+_DIGEST:-\})?$/.exec(image) ?? [];
    assert.ok(tag, `${file} has ${image}`);
    if (name === 'scrip') assert.equal(tag, version, file);
  }
});

test('the image leaves out packages under the names that the lockfile has', async () => {
  const [image, lock] = (await Promise.all(
    ['Dockerfile', '../package-lock.json'].map((name) => readFile(new URL(name, FOLDER), 'utf8')),
  )) as [string, string];
  const packages = Object.keys(JSON.parse(lock).packages);
  const removed = [...image.matchAll(/ (node_modules\/[^.\s*]+)(\*?)/g)]
    .filter(([, path]) => !image.includes(`COPY --from=build /scrip/${path} `))
    .map(([, path = '', star]) => ({ path, isWhole: star === '' }));
  for (const { path, isWhole } of removed)
    assert.ok(
      packages.some((each) => (isWhole ? `${each}/`.startsWith(`${path}/`) : each.startsWith(path))),
      path,
    );
  // The image has a Node of its own, and `npm prune` puts that of the lockfile back.
  assert.equal(removed.filter(({ path }) => path === 'node_modules/node-linux-').length, 2);
});

test('the digests are those of every image that is not built here', async (t) => {
  const folder = folderOf(t);
  // In the place of Docker: the digest tells which image was asked for.
  const docker = '#!/bin/sh\n[ "$6" != "$REFUSED" ] || exit 1\necho "sha256:$6"\n';
  await writeFile(`${folder}/docker`, docker, { mode: 0o755 });
  const run = (refused = '') =>
    promisify(execFile)('sh', [fileURLToPath(new URL('digests.sh', FOLDER))], {
      env: { PATH: `${folder}:${process.env['PATH']}`, REFUSED: refused },
    });
  const { stdout } = await run();
  const compose = await readFile(new URL('compose.yaml', FOLDER), 'utf8');
  const wanted = [...compose.matchAll(/image: (\S+)\$\{(\w+_DIGEST):-\}/g)];
  const expected = wanted.map(([, image, name]) => `${name}=@sha256:${image}`);
  assert.ok(expected.length >= 5);
  const node = /^ARG NODE_IMAGE=(.*)$/m.exec(await readFile(new URL('Dockerfile', FOLDER), 'utf8'))?.[1];
  assert.deepEqual(stdout.trim().split('\n'), [`NODE_DIGEST=@sha256:${node}`, ...expected]);
  await assert.rejects(run(node), 'an image that its registry does not show');
});

test('only the step that migrates has the address of the owner', async () => {
  const parts = (await readAll()).flatMap(([file, text]) =>
    text.split(file === 'compose.yaml' ? /^(?= {2}[\w-]+:$)/m : /^---$/m),
  );
  const owned = parts.filter((part) => /scrip_owner:|name: scrip-owner/.test(part));
  assert.deepEqual(
    owned.map((part) => part.includes('[migrate]')),
    [true, true],
  );
});

test('no pod gets settings from the names of services, such as SCRIP_PORT from the service scrip', async () => {
  const pods = (await readAll()).flatMap(([, text]) => text.match(/^ {4}spec:\n(?: {6}.*\n)+/gm) ?? []);
  assert.equal(pods.length, 3);
  for (const pod of pods) assert.match(pod, /^ {6}enableServiceLinks: false$/m);
});

test('no file of a deployment contains a password or a key', async () => {
  for (const [file, text] of await readAll()) {
    assert.doesNotMatch(text, /postgres:\/\/[a-z_]+:[^$…@]+@/, file);
    assert.doesNotMatch(text, /\bPASSWORD[:=] *['"]?[A-Za-z0-9]/, file);
  }
});
