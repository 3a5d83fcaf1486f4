import assert from 'node:assert/strict';
import { access, readdir, readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { VARIANT_A } from '../../src/http/variant-a.ts';
import { NO_TRANSACTION, VARIANT_B } from '../../src/http/variant-b.ts';
import { PRECEDENCE, REFUSALS, type RefusalCode } from '../../src/refusal.ts';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFile(new URL(path, ROOT), 'utf8');

/** The cells of every table row of a page whose first cell matches. */
function rowsOf(page: string, first: RegExp): string[][] {
  return page
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
    .filter(([cell = '']) => first.test(cell));
}

/** The anchor of a heading, as the usual renderers make it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
}

async function findPages(): Promise<string[]> {
  const docs = await readdir(new URL('docs/', ROOT), { recursive: true });
  return [
    'README.md',
    'STYLE.md',
    'CHANGELOG.md',
    ...docs.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
  ];
}

describe('the documentation', () => {
  it('has no broken link', async () => {
    for (const path of await findPages()) {
      const text = (await read(path)).replace(/```[\s\S]*?```/g, '');
      for (const [, link = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^[a-z]+:/.test(link)) continue;
        const [file = '', anchor] = link.split('#');
        const target = new URL(file, new URL(path, ROOT));
        await assert.doesNotReject(access(target), `${path} links to ${link}`);
        if (anchor === undefined) continue;
        const page = await readFile(file === '' ? new URL(path, ROOT) : target, 'utf8');
        const anchors = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));
        assert.ok(anchors.includes(anchor), `${path} links to ${link}, which has no such heading`);
      }
    }
  });

  it('has every page that source, units or examples name', async () => {
    for (const folder of ['src', 'sql', 'embedded', 'deploy', 'bench', 'soak', 'console/src']) {
      const files = await readdir(new URL(`${folder}/`, ROOT), { recursive: true, withFileTypes: true });
      for (const { parentPath, name } of files.filter((each) => each.isFile())) {
        const text = await readFile(`${parentPath}/${name}`, 'utf8');
        for (const [page] of text.matchAll(/\bdocs\/[\w/-]+\.md\b/g))
          await assert.doesNotReject(access(new URL(page, ROOT)), `${name} names ${page}`);
      }
    }
  });

  it('lists exactly the status codes, with their messages and HTTP statuses', async () => {
    const page = await read('docs/reference/status-codes.md');
    const rows = rowsOf(page, /^\d\d$/);
    const expected = new Map<string, string>([
      ...Object.entries(REFUSALS),
      ['00', 'Success'],
      ['96', 'Internal error'],
      [NO_TRANSACTION.statusCode, NO_TRANSACTION.message],
    ]);
    assert.deepEqual(
      rows.map(([code]) => code),
      [...expected.keys()].sort(),
    );
    for (const [code = '', message = '', inA, inB] of rows) {
      assert.equal(message, expected.get(code), code);
      if (!Object.hasOwn(REFUSALS, code) || code === '98') continue;
      assert.equal(inA, String(VARIANT_A.statuses[code as RefusalCode]), code);
      assert.equal(inB, String(VARIANT_B.statuses[code as RefusalCode]), code);
    }
    for (const { notFound } of VARIANT_A.endpoints) {
      if (notFound !== undefined) assert.ok(page.replaceAll('\n', ' ').includes(`\`${notFound}\``), notFound);
    }
  });

  it('lists the codes of each call in both variants, in the order of precedence', async () => {
    const page = await read('docs/reference/interface.md');
    const sections = [...page.matchAll(/^## (.+)\n(?:(?!^## )[\s\S])*?^Codes: ([\s\S]+?)\.$/gm)];
    const codesOf = new Map(sections.map(([, heading = '', codes = '']) => [heading, codes]));
    const calls = [...page.matchAll(/^\| \[([^\]]+)\]\(#[^)]+\) \| `([A-Z]+) ([^`]+)`/gm)];
    assert.equal(calls.length, VARIANT_A.endpoints.length);
    for (const [, name = '', method, path = ''] of calls) {
      const listed = [...(codesOf.get(name) ?? assert.fail(name)).matchAll(/`(\d\d)`(?: \((A|B)\))?/g)];
      for (const [letter, { endpoints }] of [['A', VARIANT_A] as const, ['B', VARIANT_B] as const]) {
        const isThis = (each: (typeof endpoints)[number]) =>
          each.method === method && each.path.replace(':reference', '{reference}') === path;
        const endpoint = endpoints.find(isThis);
        if (!endpoint) continue;
        const ordered: readonly string[] = endpoint.refusals.filter((code) => code !== '60');
        assert.deepEqual(
          ordered,
          PRECEDENCE.filter((code) => ordered.includes(code)),
        );
        const codes = listed.filter(([, , only]) => only === undefined || only === letter);
        assert.deepEqual(
          codes.map(([, code]) => code),
          endpoint.refusals,
          `${name}, variant ${letter}`,
        );
      }
    }
  });

  it('lists the codes in the order of precedence of the source', async () => {
    const [line = ''] = /^\d\d(, \d\d)+$/m.exec(await read('docs/reference/status-codes.md')) ?? [];
    assert.deepEqual(
      line.split(', '),
      PRECEDENCE.filter((code) => code !== '60' && code !== '91'),
    );
  });
});
