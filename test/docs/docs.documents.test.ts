import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { generatedDocuments } from '../../docs/generate/documents.ts';
import { CREDENTIALS_PLACE, snippetsText } from '../../docs/generate/snippets.ts';
import { VARIANT_A } from '../../src/http/variant-a.ts';
import { VARIANT_B } from '../../src/http/variant-b.ts';
import type { Voucher } from '../support/dialects.ts';
import { Till } from '../support/till.ts';

const BUILT = new URL('../../docs/site/dist/api/', import.meta.url);
const REFERENCE = new URL('../../docs/reference/', import.meta.url);

/** The documents that are generated from the API: OpenAPI, the Postman collection, llms.txt and snippets. */

type Item = {
  readonly name: string;
  readonly item?: readonly Item[];
  readonly request?: {
    readonly method: string;
    readonly header: readonly { readonly key: string; readonly value: string }[];
    readonly url: {
      readonly raw: string;
      readonly host: readonly string[];
      readonly path: readonly string[];
    };
    readonly body?: { readonly raw: string };
  };
};
type Collection = {
  readonly info: { readonly schema: string };
  readonly auth: {
    readonly type: string;
    readonly basic: readonly { readonly key: string; readonly value: string }[];
  };
  readonly variable: readonly { readonly key: string; readonly value: string }[];
  readonly item: readonly Item[];
};

function documentAt(path: string): string {
  return generatedDocuments().find((each) => each.path === path)?.text ?? assert.fail(`there is no ${path}`);
}

const collection = (): Collection => JSON.parse(documentAt('postman.json'));

/** Sends a request of the collection as Postman does: with its variables filled in. */
async function send(item: Item, variables: Readonly<Record<string, string>>) {
  const fill = (text: string) =>
    text.replace(
      /\{\{(\w+)\}\}/g,
      (_, name) => variables[name] ?? assert.fail(`there is no variable ${name}`),
    );
  const { method, url, header, body } = item.request ?? assert.fail(`${item.name} has no request`);
  assert.equal(url.raw, [...url.host, ...url.path].join('/'));
  const basic = Object.fromEntries(collection().auth.basic.map(({ key, value }) => [key, fill(value)]));
  const response = await fetch(fill(url.raw), {
    method,
    headers: {
      authorization: `Basic ${btoa(`${basic['username']}:${basic['password']}`)}`,
      ...Object.fromEntries(header.map(({ key, value }) => [key, value])),
    },
    ...(body && { body: fill(body.raw) }),
  });
  return (await response.json()) as { statusCode: string; data: { vouchers: Voucher[] } };
}

describe('a document generated from the API', () => {
  it('is built from this program (else: npm run docs:build)', async () => {
    for (const { path, text } of generatedDocuments()) {
      const built = await readFile(new URL(path, BUILT), 'utf8').catch(() => '');
      assert.ok(built === text, `docs/site/dist/api/${path} is stale: npm run docs:build`);
    }
  });

  it('is served under /docs/', async (t) => {
    const { testService } = await Till.open(t);
    const built = generatedDocuments().map(({ path }) => new URL(path, BUILT));
    const pages = ['interface.md', 'status-codes.md'].map((path) => new URL(path, REFERENCE));
    for (const file of [...built, ...pages]) {
      const path = file.href.replace(BUILT.href, '').replace(REFERENCE.href, '');
      const response = await fetch(`${testService.baseUrl}/docs/${path}`);
      const type = path.endsWith('.json') ? 'application/json; charset=utf-8' : 'text/plain; charset=utf-8';
      assert.deepEqual([response.status, response.headers.get('content-type')], [200, type]);
      assert.equal(await response.text(), await readFile(file, 'utf8'));
    }
  });

  it('names every call: llms.txt with its fields, the Postman collection once', () => {
    const text = documentAt('llms.txt');
    const [inA, inB] = collection().item;
    for (const [{ prefix, endpoints }, folder] of [[VARIANT_A, inA] as const, [VARIANT_B, inB] as const]) {
      assert.equal(folder?.item?.length, endpoints.length);
      for (const { method, path, body } of endpoints) {
        assert.ok(text.includes(`\`${method} ${prefix}${path.replace(':reference', '{reference}')}\``), path);
        const { properties = {} } = (body ?? {}) as { properties?: object };
        for (const field of Object.keys(properties)) assert.ok(text.includes(`  - \`${field}\` (`), field);
      }
    }
    assert.match(text, /^# Scrip\n\n> /);
    for (const [, link = ''] of text.matchAll(/\]\(([^)]+)\)/g)) documentAt(link);
  });

  it('has a program in Python and PHP for every call, with a reference where the call takes one', () => {
    const texts = snippetsText().split(/^## /m).slice(1);
    assert.equal(texts.length, 2);
    for (const [at, { prefix, endpoints }] of [VARIANT_A, VARIANT_B].entries()) {
      const text = texts[at] ?? '';
      for (const [language, literal] of [
        ['python', (field: string) => `"${field}":`],
        ['php', (field: string) => `'${field}' =>`],
      ] as const) {
        const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))];
        assert.equal(blocks.length, endpoints.length);
        for (const { method, path, body } of endpoints) {
          const at = text.indexOf(`\`${method} ${prefix}${path.replace(':reference', '{reference}')}\``);
          const block = blocks.find(({ index }) => at >= 0 && index > at)?.[1] ?? '';
          assert.ok(
            block.includes(`${prefix}${path.replace(':reference', 'sale-1')}"`),
            `${language}: ${path}`,
          );
          assert.ok(block.includes(`Basic ${CREDENTIALS_PLACE}"`), `${language}: ${path}`);
          const { properties = {} } = (body ?? {}) as { properties?: object };
          if ('reference' in properties)
            assert.ok(block.includes(literal('reference')), `${language}: ${path}`);
        }
      }
    }
  });

  it('is a Postman collection whose requests succeed in their order', async (t) => {
    const till = await Till.open(t);
    const { keyId, secret } = till.merchant;
    assert.match(collection().info.schema, /v2\.1\.0/);
    for (const [index, folder] of collection().item.entries()) {
      const variables: Record<string, string> = {
        ...Object.fromEntries(collection().variable.map(({ key, value }) => [key, value])),
        baseUrl: till.testService.baseUrl,
        keyId,
        secret,
        reference: `sale-${index}`,
        batchReference: `batch-${index}`,
      };
      const use = ({ code, pin, serialNumber }: Voucher) =>
        Object.assign(variables, { code, pin, serialNumber: String(serialNumber) });
      let made: Voucher | undefined;
      for (const item of folder.item ?? []) {
        const isActivation = item.request?.url.raw.endsWith('/activate');
        if (isActivation) use(await till.voucher(null));
        const { statusCode, data } = await send(item, variables);
        assert.equal(statusCode, '00', `${folder.name}: ${item.name}`);
        made ??= data.vouchers[0];
        if (made) use(made);
      }
    }
  });
});
