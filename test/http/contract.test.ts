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
  readonly title?: string;
  readonly description?: string;
  readonly examples?: unknown;
};

/** The fields of the shapes of a section, by their titles. */
const shapes = new Map<string, readonly string[]>();

function linesOf(name: string, schema: Schema, isRequired: boolean): string[] {
  const {
    type,
    properties,
    items,
    required = [],
    title,
    description: _,
    examples: _examples,
    ...rules
  } = schema;
  const limits = Object.entries(rules).map(([rule, value]) => `${rule} ${JSON.stringify(value)}`);
  const shown = [[type ?? 'any'].flat().join(' or '), ...limits].join(', ');
  const own = [
    ...Object.entries(properties ?? {}).flatMap(([field, each]) =>
      linesOf(field, each, required.includes(field)),
    ),
    ...(items ? linesOf('[]', items, true) : []),
  ].map((line) => `  ${line}`);
  const isShape = title !== undefined && properties !== undefined;
  if (isShape) assert.deepEqual(shapes.get(title) ?? own, own, `two shapes have the title ${title}`);
  if (isShape) shapes.set(title, own);
  return [`${name}${isRequired ? '' : '?'}: ${shown}${isShape ? `, ${title}` : ''}`, ...(isShape ? [] : own)];
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
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { requestBody, responses }]) => {
      const endpoint = dialect.endpoints.find(
        (each) =>
          dialect.prefix + each.path === path.replace('{reference}', ':reference') &&
          each.method === method.toUpperCase(),
      );
      return {
        fields: [
          `${method.toUpperCase()} ${path}`,
          ...indented([
            ...Object.keys(requestBody?.content ?? {}).map((type) => `takes ${type}`),
            ...linesOf(
              'body',
              Object.values(requestBody?.content ?? {})[0]?.schema ?? { type: 'none' },
              true,
            ),
            ...linesOf('data', (endpoint?.data ?? {}) as Schema, true),
          ]),
        ],
        codes: Object.entries(responses).map(
          ([status, { description }]) =>
            `  ${status}: ${[...description.matchAll(/`(\d\d)`:/g)].map(([, code]) => code).join(' ')}`,
        ),
      };
    }),
  );
  const [first, ...others] = routes.map(({ codes }) => codes);
  const common = (first ?? []).filter((line) => others.every((codes) => codes.includes(line)));
  return [
    `every route below ${dialect.prefix}`,
    ...common,
    '',
    ...routes.flatMap(({ fields, codes }) => [
      ...fields,
      ...codes.filter((line) => !common.includes(line)),
      '',
    ]),
  ];
}

const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}`);

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

/** Returns the lines of a section, and then each of its shapes once. */
function withShapes(section: () => string[]): string[] {
  shapes.clear();
  const lines = section();
  return [...lines, ...[...shapes].flatMap(([title, fields]) => [`${title}: object`, ...fields, ''])];
}

test('routes, fields, codes and events are those of test/http/contract.txt', async () => {
  const sections = [() => dialectLines(VARIANT_A), () => dialectLines(VARIANT_B), eventLines];
  const text = sections.flatMap(withShapes).join('\n');
  if (process.env['SCRIP_UPDATE_CONTRACT']) await writeFile(FILE, text);
  assert.equal(text, await readFile(FILE, 'utf8'), 'SCRIP_UPDATE_CONTRACT=1 npx node test/run.ts contract');
});
