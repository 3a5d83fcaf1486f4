import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findNodes, type Installed, installPacked } from '../support/sdk.packed.ts';

/** The client as it is published: packed, installed into an empty project, and used from there. */

const run = promisify(execFile);
const SDK = fileURLToPath(new URL('../../sdk/', import.meta.url));
const VERIFIER = fileURLToPath(new URL('../../verifier/', import.meta.url));
const TSC = fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url));

let installed: Installed;
let folder: string;

before(async () => {
  installed = await installPacked('sdk');
  folder = installed.folder;
});

after(() => installed.remove());

describe('the package', () => {
  it('contains the built files, and nothing else', () => {
    const { paths } = installed;
    const built = ['dist/index.js', 'dist/index.d.ts', 'dist/cli/main.js', 'bin/scrip-client.mjs'];
    for (const path of ['LICENSE', 'README.md', 'package.json', ...built])
      assert.ok(paths.includes(path), path);
    const form = /^(LICENSE|README\.md|package\.json|bin\/scrip-client\.mjs|dist\/[\w./-]+\.(js|d\.ts))$/;
    for (const path of paths) assert.match(path, form);
  });

  it('has no dependency but the verifier of proofs, which has none', async () => {
    const manifests = [SDK, VERIFIER].map(async (folder) =>
      JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')),
    );
    const [own, verifier] = await Promise.all(manifests);
    assert.deepEqual(own.dependencies, { '@scrip/verifier': verifier.version });
    assert.equal(verifier.dependencies, undefined);
    for (const kind of ['peerDependencies', 'optionalDependencies'])
      assert.deepEqual([own[kind], verifier[kind]], [undefined, undefined]);
    await assert.rejects(access(join(folder, 'node_modules', 'typescript')));
  });

  it('runs on every installed Node', async (t) => {
    const script = join(folder, 'use.js');
    await writeFile(
      script,
      `import { Scrip, ScripError } from '@scrip/client';
       const scrip = new Scrip({ baseUrl: 'http://127.0.0.1:9', keyId: 'k', secret: 's', variant: 'a' });
       const error = await scrip.redeem({ code: '482913057641', pin: '0731', amount: 0.1 + 0.2 }).catch((thrown) => thrown);
       console.log(error instanceof ScripError, error.code, error.userMessage('de'));`,
    );
    for (const { path, version } of await findNodes()) {
      const { stdout } = await run(path, [script]);
      assert.equal(stdout, 'true invalidAmount Dieser Betrag ist nicht möglich.\n');
      t.diagnostic(version);
    }
  });

  it('has a command line that runs on every installed Node', async () => {
    const command = join(folder, 'node_modules', '@scrip', 'client', 'bin', 'scrip-client.mjs');
    for (const { path: node } of await findNodes()) {
      assert.match((await run(node, [command, '--help'])).stdout, /^Usage: scrip-client COMMAND/);
    }
    await access(join(folder, 'node_modules', '.bin', 'scrip-client'));
  });

  it('has types with which every example of its README compiles in another project', async () => {
    const page = await readFile(join(SDK, 'README.md'), 'utf8');
    const examples = [...page.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, text = '']) => text);
    assert.ok(examples.length >= 5);
    await mkdir(join(folder, 'examples'));
    for (const [at, text] of examples.entries()) await writeFile(join(folder, 'examples', `${at}.ts`), text);
    const compilerOptions = {
      strict: true,
      noEmit: true,
      module: 'nodenext',
      target: 'es2022',
      lib: ['es2022', 'dom', 'dom.asynciterable'],
      types: [],
      exactOptionalPropertyTypes: true,
    };
    const config = join(folder, 'tsconfig.json');
    await writeFile(config, JSON.stringify({ compilerOptions, include: ['examples'] }));
    await run(TSC, ['-p', config]).catch((error: { stdout: string }) => assert.fail(error.stdout));
    // A wrong example does not compile.
    await writeFile(
      join(folder, 'examples', 'wrong.ts'),
      `import { Nothing } from '@scrip/client';\nNothing;\n`,
    );
    await assert.rejects(run(TSC, ['-p', config]));
  });
});
