import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readPages } from '../../docs/site/pages.ts';
import { type CodeName, nameOf } from '../../sdk/src/codes.ts';
import { messageFor } from '../../sdk/src/messages.ts';
import { whyNot } from '../support/stand-in.ts';
import { Till } from '../support/till.ts';

/** The examples of the guides: run, or at least compiled. */

const CLIENT = new URL('../../sdk/src/index.ts', import.meta.url).href;
const BIN = fileURLToPath(new URL('../../sdk/bin/scrip-client.mjs', import.meta.url));

/** The pages with what is inserted from the program. */
const pages = [...(await readPages()).values()]
  .filter(({ path }) => path.startsWith('docs/'))
  .map(({ path, text }) => ({ name: path.slice('docs/'.length), text }));

const blocksOf = (text: string, language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, block = '']) => block,
  );

type Ran = { readonly status: number; readonly out: string; readonly err: string };

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<Ran> {
  const { promise, resolve } = Promise.withResolvers<Ran>();
  execFile(command, args, { env }, (error, out, err) =>
    resolve({ status: error ? Number(error.code) : 0, out, err }),
  );
  return promise;
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-guides-'));
  return work(folder).finally(() => rm(folder, { recursive: true, force: true }));
}

describe('an example in a guide', () => {
  const examples = pages.filter(
    ({ name, text }) => name.startsWith('how-to/') && blocksOf(text, 'ts').join().includes('//=>'),
  );

  it('is found in the two guides for integrators', () => {
    assert.deepEqual(examples.map(({ name }) => name).sort(), ['how-to/first-call.md', 'how-to/go-live.md']);
  });

  for (const { name, text } of examples) {
    it(`of ${name} runs against the service and prints the output that the guide shows`, async (t) => {
      const { testService, merchant } = await Till.open(t);
      const source = blocksOf(text, 'ts').join('\n').replaceAll("'@scrip/client'", `'${CLIENT}'`);
      const expected = [...source.matchAll(/\/\/=> (.+)$/gm)].map(([, line]) => line);
      assert.ok(expected.length > 0, 'the page shows its output');
      await inFolder(async (folder) => {
        const file = join(folder, 'example.ts');
        await writeFile(file, source);
        const { status, out, err } = await run(process.execPath, [file], {
          PATH: process.env['PATH'],
          SCRIP_BASE_URL: testService.baseUrl,
          SCRIP_KEY_ID: merchant.keyId,
          SCRIP_SECRET: merchant.secret,
        });
        assert.equal(status, 0, err);
        assert.deepEqual(out.trimEnd().split('\n'), expected);
      });
    });
  }

  it('passes the type checker', async () => {
    await inFolder(async (folder) => {
      for (const { name, text } of examples) {
        const source = blocksOf(text, 'ts')
          .join('\n')
          .replaceAll("'@scrip/client'", `'${fileURLToPath(CLIENT)}'`);
        await writeFile(join(folder, `${name.replaceAll('/', '-')}.ts`), source);
      }
      const root = fileURLToPath(new URL('../../', import.meta.url));
      const options = { typeRoots: [join(root, 'node_modules/@types')], noUnusedLocals: false };
      const config = {
        extends: join(root, 'tsconfig.json'),
        compilerOptions: options,
        include: [`${folder}/*.ts`],
      };
      await writeFile(join(folder, 'package.json'), '{"type":"module"}');
      await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
      const { status, out } = await run(join(root, 'node_modules/.bin/tsc'), ['-p', folder]);
      assert.equal(status, 0, out);
    });
  });

  const compilers = [
    { language: 'python', tool: 'python3', args: ['-m', 'py_compile'], takesAll: true },
    { language: 'php', tool: 'php', args: ['-l'], takesAll: false },
  ];
  for (const { language, tool, args, takesAll } of compilers) {
    it(`in ${language} compiles`, { skip: whyNot(tool) }, async () => {
      const blocks = pages.flatMap(({ text }) => blocksOf(text, language));
      assert.ok(blocks.length > 16);
      await inFolder(async (folder) => {
        const files = blocks.map((_, at) => join(folder, `example-${at}.${language}`));
        for (const [at, block] of blocks.entries()) {
          await writeFile(
            files[at] ?? '',
            language === 'php' && !block.startsWith('<?php') ? `<?php\n${block}` : block,
          );
        }
        for (const each of takesAll ? [files] : files.map((file) => [file])) {
          const { status, out, err } = await run(tool, [...args, ...each]);
          assert.equal(status, 0, out + err);
        }
        // The compiler does read the files.
        await writeFile(files[0] ?? '', '<?php if (');
        assert.notEqual((await run(tool, [...args, files[0] ?? ''])).status, 0);
      });
    });
  }
});

describe('a guide', () => {
  it('names only commands and options that scrip-client has', async () => {
    const lines = pages.flatMap(({ text }) => [...text.matchAll(/npx @scrip\/client ([a-z]+)([^\n`]*)/g)]);
    assert.ok(lines.length >= 6);
    for (const [line, command = '', rest = ''] of lines) {
      const { status, out } = await run(process.execPath, [BIN, command, '--help']);
      assert.equal(status, 0, line);
      for (const [option] of rest.matchAll(/--[a-z-]+/g))
        assert.ok(out.includes(`${option} `), `${line}: ${option}`);
    }
  });

  it('gives the names and customer messages of the status codes as the client has them', () => {
    const text = pages.find(({ name }) => name === 'how-to/go-live.md')?.text ?? '';
    const rows = [...text.matchAll(/^\| (\d\d|none) \| `(\w+)` \| ([^|]+) \|/gm)];
    assert.ok(rows.length >= 14);
    for (const [, code = '', name = '', words] of rows) {
      if (code !== 'none') assert.equal(name, nameOf(code));
      assert.equal(words, messageFor(name as CodeName), code);
    }
  });
});
