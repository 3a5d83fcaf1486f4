import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { describeEvents } from '../../docs/generate/events.ts';
import { describeDialect } from '../../docs/generate/openapi.ts';
import type { Dialect } from '../../src/http/endpoint.ts';
import { VARIANT_A } from '../../src/http/variant-a.ts';
import { VARIANT_B } from '../../src/http/variant-b.ts';

/**
 * What merchants' programs rely on: the routes, the fields of requests and answers, the status codes, and the
 * events. A change of it is a change of `contract.txt` that a reviewer sees.
 */

const FILE = new URL('contract.txt', import.meta.url);

type Schema = {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly examples?: unknown;
};

function linesOf(name: string, schema: Schema, isRequired: boolean): string[] {
  const { type, properties, items, required = [], description: _, examples: _examples, ...limits } = schema;
  const { title: _title, ...rest } = limits as { title?: string };
  const rules = Object.entries(rest).map(([rule, value]) => `${rule} ${JSON.stringify(value)}`);
  const line = [`${name}${isRequired ? '' : '?'}: ${[type ?? 'any'].flat().join(' or ')}`, ...rules].join(
    ', ',
  );
  return [
    line,
    ...Object.entries(properties ?? {}).flatMap(([field, each]) =>
      linesOf(`  ${field}`, each, required.includes(field)),
    ),
    ...(items ? linesOf('  []', items, true) : []),
  ].map((each, at) => (at === 0 ? each : `  ${each}`));
}

type Content = { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
type Described = {
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Described200>>;
};
type Described200 = Content & { readonly description: string };

function dialectLines(dialect: Dialect): string[] {
  const { paths } = describeDialect(dialect) as unknown as {
    paths: Record<string, Record<string, Described>>;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { requestBody, responses }]) => {
      const endpoint = dialect.endpoints.find(
        (each) =>
          dialect.prefix + each.path === path.replace('{reference}', ':reference') &&
          each.method === method.toUpperCase(),
      );
      return [
        `${method.toUpperCase()} ${path}`,
        ...Object.entries(requestBody?.content ?? {}).map(([type]) => `  takes ${type}`),
        ...linesOf('  body', Object.values(requestBody?.content ?? {})[0]?.schema ?? { type: 'none' }, true),
        ...linesOf('  data', (endpoint?.data ?? {}) as Schema, true),
        ...Object.entries(responses).map(
          ([status, { description }]) =>
            `  ${status}: ${[...description.matchAll(/`(\d\d)`:/g)].map(([, code]) => code).join(' ')}`,
        ),
        '',
      ];
    }),
  );
}

function eventLines(): string[] {
  const events = describeEvents((schema) => JSON.parse(JSON.stringify(schema))) as Record<
    string,
    { post: { requestBody: Content } }
  >;
  return Object.entries(events).flatMap(([type, { post }]) => [
    ...linesOf(
      `event ${type}`,
      post.requestBody.content['application/json']?.schema.properties?.['data'] ?? {},
      true,
    ),
    '',
  ]);
}

test('routes, fields, codes and events are those of test/http/contract.txt', async () => {
  const text = [VARIANT_A, VARIANT_B].flatMap(dialectLines).concat(eventLines()).join('\n');
  if (process.env['SCRIP_UPDATE_CONTRACT']) await writeFile(FILE, text);
  assert.equal(text, await readFile(FILE, 'utf8'), 'SCRIP_UPDATE_CONTRACT=1 npx node test/run.ts contract');
});
