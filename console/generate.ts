/**
 * Writes what the console takes from the OpenAPI documents of the operator API and the portal into
 * `console/generated/`: the operations, the types of the answers, and the English labels. `npm run generate
 * -w @scrip/console` does so, also at the beginning of `npm run check` and of the build.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';
import { OTHER_ACTIONS } from '../src/audit/entries.ts';
import { describeApi, describePeople } from '../src/http/operator/openapi.ts';
import { OPERATOR_APIS } from '../src/http/operator/routes.ts';
import { PEOPLE } from '../src/http/operator/sessions.ts';
import { labelOf } from '../src/label.ts';
import { PORTAL_OPERATIONS } from '../src/operations/portal.ts';
import { OPERATIONS } from '../src/operations/table.ts';
import { REFUSALS } from '../src/refusal.ts';
import { type Field, readDocument } from './src/described.ts';

const OUT = new URL('generated/', import.meta.url);

type About = { readonly name: string; readonly title: string; readonly use: string };

type Schema = {
  readonly title?: string;
  readonly enum?: readonly unknown[];
  readonly 'x-labels'?: Readonly<Record<string, string>>;
  /** The names of signs in a command. */
  readonly names?: Readonly<Record<string, string>>;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly operationId?: string;
  readonly 'x-title'?: string;
  readonly 'x-reports'?: readonly About[];
  /** The titles of the columns of reports. */
  readonly 'x-titles'?: Readonly<Record<string, string>>;
  /** Of a parameter, with its schema. */
  readonly name?: string;
  readonly schema?: Schema;
};

/** The labels of names: of fields and operations; of words also by field, as `state.PENDING`. */
const fields = new Map<string, string>();
const actions = new Map<string, string>();
const wordsByField = new Map<string, string>();
const words = new Set<string>();
const reports = new Map<string, About>();

/** Adds a label. A name that has two of them is an error. */
function add(labels: Map<string, string>, name: string | undefined, label: string | undefined): void {
  if (name === undefined || label === undefined) return;
  const known = labels.get(name) ?? label;
  if (known !== label) throw new Error(`${name} is “${known}” and “${label}”`);
  labels.set(name, label);
}

/** @param field the field that the schema describes */
function collect(value: unknown, field?: string): void {
  if (typeof value !== 'object' || value === null) return;
  const schema = value as Schema;
  add(actions, schema.operationId, schema['x-title']);
  if (field !== undefined && typeof schema.title === 'string') add(fields, field, schema.title);
  for (const [word, label] of Object.entries(schema['x-labels'] ?? {}))
    add(wordsByField, `${field}.${word}`, label);
  for (const [name, word] of Object.entries(schema.names ?? {}))
    add(wordsByField, `${field}.${word}`, labelOf(name));
  for (const [name, label] of Object.entries(schema['x-titles'] ?? {})) add(fields, name, label);
  for (const about of schema['x-reports'] ?? []) reports.set(about.name, about);
  for (const word of schema.enum ?? []) if (word !== null) words.add(String(word));
  for (const [name, each] of Object.entries(schema.properties ?? {})) collect(each, name);
  if (schema.name && schema.schema) collect(schema.schema, schema.name);
  for (const [key, each] of Object.entries(schema)) {
    if (key === 'properties' || key === 'schema' || key === 'x-reports') continue;
    collect(each, key === 'items' || key === 'anyOf' ? field : undefined);
  }
  if (schema.schema && !schema.name) collect(schema.schema);
}

/** Returns a label for each word of a closed list, by its field if the fields do not agree. */
function labelsOfWords(): Map<string, string> {
  const labels = new Map<string, string>();
  for (const word of words) {
    const own = [...wordsByField].filter(([name]) => name.slice(name.indexOf('.') + 1) === word);
    const different = new Set(own.map(([, label]) => label));
    if (different.size > 1) for (const [name, label] of own) labels.set(name, label);
    else if (own[0]) labels.set(word, own[0][1]);
    else if (/^([a-z]+(-[a-z]+)*|[A-Z]{3,}(_[A-Z]+)*)$/.test(word)) labels.set(word, labelOf(word));
  }
  return labels;
}

/** Writes a file, unless it is the same: one that is newer than the build has changed since then. */
async function write(name: string, text: string): Promise<void> {
  const file = new URL(name, OUT);
  if ((await readFile(file, 'utf8').catch(() => undefined)) !== text) await writeFile(file, text);
}

async function writeTypes(name: string, document: object): Promise<void> {
  await write(`${name}.d.ts`, astToString(await openapiTS(JSON.stringify(document), { immutable: true })));
}

/** The summaries of operations, and the descriptions of fields: help in forms. */
const help = new Map<string, string>();

/** The description of a field as help in a form, where nothing is null or left out, and a file is chosen. */
const asHelp = (description: string) =>
  description
    .replaceAll('`', '')
    .replace(/\bIn major units\b/g, 'For example 12.50')
    .replace(/, in (major units|base64)\b/g, '')
    .replace(/\b(null|left out|Left out):/g, (word) => (word === 'Left out:' ? 'Empty:' : 'empty:'));

const wordsIn = (text: string) => text.toLowerCase().match(/[a-z0-9]+/g) ?? [];

/** Whether a text only repeats what stands above it: `The name of the product.` below the field `Name`. */
function repeats(text: string, ...above: readonly string[]): boolean {
  const small = ['a', 'an', 'the', 'of', 'from', 'in', 'is', 'id', 'voucher', 'vouchers'];
  const said = new Set([...small, ...wordsIn(above.join(' '))]);
  return wordsIn(text).every((word) => said.has(word));
}

/** Adds what belongs into a field. Of a thing that is chosen by its name, nobody needs to know the id. */
function addHelp(operation: string, { name, description = '' }: Field): void {
  const label = `${fields.get(name) ?? ''} ${labelOf(name)}`;
  if (/^The (id|code) of /.test(description) || repeats(description, label, operation)) return;
  help.set(`${operation}.${name}`, asHelp(description));
}

/** Leaves out help, which is in a file of its own, and values that are false, zero or empty. */
const asSent = (name: string, value: unknown) =>
  ['summary', 'description', 'example'].includes(name) || value === false || value === '' || value === 0
    ? undefined
    : value;

await mkdir(OUT, { recursive: true });
await writeTypes('people', describePeople(PEOPLE));
for (const api of OPERATOR_APIS) {
  const document = describeApi(api);
  collect(document);
  await writeTypes(api.name, document);
  const { operations, shapes } = readDocument(document as never, api.name);
  for (const { name, method, summary = '', fields: own } of operations.values()) {
    if (method === 'GET') continue;
    if (!repeats(summary, name, actions.get(name) ?? '')) help.set(name, summary);
    for (const field of own) addHelp(name, field);
  }
  await write(
    `${api.name}.json`,
    JSON.stringify({ operations: [...operations], shapes: [...shapes] }, asSent),
  );
}
await write(
  'help.ts',
  `export const help: Readonly<Record<string, string>> = ${JSON.stringify(Object.fromEntries(help))};\n`,
);
const audited = [...OPERATIONS, ...PORTAL_OPERATIONS].flatMap(({ audit }) => audit ?? []);
const actionsOfAudit = [...new Set([...audited, ...Object.keys(OTHER_ACTIONS)])].sort();
await write('audited.ts', `export const audited: readonly string[] = ${JSON.stringify(actionsOfAudit)};\n`);
const written = (labels: Readonly<Record<string, ReadonlyMap<string, string>>>) =>
  Object.entries(labels).map(([name, each]) => {
    const value = JSON.stringify(Object.fromEntries(each));
    return `export const ${name}: Readonly<Record<string, string>> = ${value};\n`;
  });
await write('en.labels.ts', written({ fields, words: labelsOfWords(), actions }).join(''));
const texts = written({ codes: new Map(Object.entries(REFUSALS)) });
const told = [...reports.values()].map(({ name, title, use }) => [name, { title, use }]);
texts.push(`export const reports = ${JSON.stringify(Object.fromEntries(told))};\n`);
await write('en.ts', texts.join(''));
const abouts = [...reports.values()].map(({ title: _title, use: _use, ...about }) => about);
const type = `readonly {
  readonly number: string;
  readonly name: keyof typeof texts;
  readonly ofMerchant: string | null;
  readonly endsAnytime: boolean;
  readonly breakdowns: readonly string[];
  readonly columns: Readonly<Record<string, string>>;
  readonly figures: Readonly<Record<string, Readonly<Record<string, Figure>>>>;
}[]`;
await write(
  'reports.ts',
  `import type { Figure } from '../src/figures.ts';\nimport type { reports as texts } from './en.ts';\nexport const reports: ${type} = ${JSON.stringify(abouts)};\n`,
);
