import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { test } from 'node:test';
import { help } from '../../console/generated/help.ts';
import { UNDECLARED } from '../../console/src/figures.ts';
import { unopened } from '../../console/src/i18n/de.figures.ts';
import { findings } from '../../console/src/i18n/de.findings.ts';
import { hints } from '../../console/src/i18n/de.hints.ts';
import { labels as german } from '../../console/src/i18n/de.labels.ts';
import { faults, problems } from '../../console/src/i18n/de.problems.ts';
import { refusalOf, refusals } from '../../console/src/i18n/de.refusals.ts';
import { de } from '../../console/src/i18n/de.ts';
import { labels as english } from '../../console/src/i18n/en.labels.ts';
import { en } from '../../console/src/i18n/en.ts';
import { FOR_PAGES } from '../../src/http/headers.ts';
import { describeApi } from '../../src/http/operator/openapi.ts';
import { OPERATOR_APIS } from '../../src/http/operator/routes.ts';
import { buildServer } from '../../src/http/server.ts';
import { ADVICE, FOUND } from '../../src/monitor/findings.ts';
import { PORTAL_OPERATIONS } from '../../src/operations/portal.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { TITLES } from '../../src/problem.ts';
import { PRECEDENCE } from '../../src/refusal.ts';
import { parametersOf } from '../../src/schema.ts';
import { onDatabase, serviceWithoutDatabase } from '../support/harness.ts';

/** The files of the console as the service sends them, and their sizes. */

const DIST = new URL('../../console/dist/', import.meta.url);
const KB = 1_000;

type Chunk = {
  readonly file: string;
  readonly css?: readonly string[];
  readonly imports?: readonly string[];
  readonly isDynamicEntry?: boolean;
};
type Manifest = Readonly<Record<string, Chunk>>;

async function readManifest(): Promise<Manifest> {
  return JSON.parse(await readFile(new URL('.vite/manifest.json', DIST), 'utf8'));
}

/** The files that a browser loads for a page before it shows. */
function filesOf(manifest: Manifest, names: readonly string[], found = new Set<string>()): Set<string> {
  for (const name of names) {
    const chunk = manifest[name];
    assert.ok(chunk, `the build has no ${name}`);
    if (found.has(chunk.file)) continue;
    found.add(chunk.file);
    for (const css of chunk.css ?? []) found.add(css);
    filesOf(manifest, chunk.imports ?? [], found);
  }
  return found;
}

/** In bytes, as a browser receives them: compressed by Brotli. */
async function sizeOf(files: Iterable<string>): Promise<number> {
  let total = 0;
  for (const file of files)
    if (/\.(js|css|json)$/.test(file)) total += (await stat(new URL(`${file}.br`, DIST))).size;
  return total;
}

test('the policy of the console allows only its own files', async (t) => {
  const service = serviceWithoutDatabase();
  const app = buildServer(service);
  t.after(() => app.close().then(() => service.db.close()));
  const nonces = new Set<string>();
  for (const url of ['/console/', '/console/merchants/1', '/portal/', '/console/']) {
    const { statusCode, headers, body } = await app.inject({ url });
    assert.equal(statusCode, 200, body);
    const policy = String(headers['content-security-policy']);
    const [, nonce = ''] = /style-src 'self' 'nonce-([A-Za-z0-9+/=]{24})'/.exec(policy) ?? [];
    assert.ok(body.includes(`content="${nonce}"`), 'the page knows the nonce of its policy');
    nonces.add(nonce);
    assert.match(policy, /^default-src 'none'; script-src 'self';/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    assert.equal(headers['cache-control'], 'no-store');
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['referrer-policy'], 'no-referrer');
    const camera = url.startsWith('/portal/') ? 'camera=(self)' : 'camera=()';
    assert.equal(
      headers['permissions-policy'],
      `${camera}, geolocation=(), microphone=(), payment=(), usb=()`,
    );
    assert.match(body, /<script [^>]*src="\/console\/assets\//);
    assert.doesNotMatch(body, /<script(?![^>]* src=)|<style|\son\w+=|\sstyle=|(src|href)="(?!\/console\/)/);
  }
  assert.equal(nonces.size, 4);
});

test('what a script asks for has no headers of pages, and what a browser opens has all', async (t) => {
  const service = serviceWithoutDatabase();
  const app = buildServer(service);
  t.after(() => app.close().then(() => service.db.close()));
  const namesFor = async (destination: string | undefined) => {
    const headers = destination === undefined ? {} : { 'sec-fetch-dest': destination };
    const { headers: answered } = await app.inject({ url: '/operator/v1/session/methods', headers });
    assert.equal(answered['cache-control'], 'no-store');
    assert.equal(answered['x-content-type-options'], 'nosniff');
    assert.equal(answered['cross-origin-resource-policy'], 'same-origin');
    return FOR_PAGES.filter((name) => name in answered);
  };
  assert.deepEqual(await namesFor('empty'), []);
  for (const other of [undefined, 'document', 'iframe', 'worker', 'script'])
    assert.deepEqual(await namesFor(other), FOR_PAGES, other);
});

test('however many strangers open the pages, their operator is looked up once', async (t) => {
  const service = serviceWithoutDatabase();
  let reads = 0;
  const query = async () => {
    reads++;
    return [{ value: JSON.stringify({ sender: 'Vouchers & "Sons" <$& Ltd>' }) }] as never[];
  };
  const app = buildServer(onDatabase(service, { ...service.db, query }));
  t.after(() => app.close().then(() => service.db.close()));
  const urls = ['/portal/sign-in', '/console/', '/console/sign-in'];
  const pages = await Promise.all(
    Array.from({ length: 51 }, (_, at) => app.inject({ url: urls[at % 3] ?? '' })),
  );
  for (const { body } of pages)
    assert.match(
      body,
      /name="application-name" content="Vouchers &amp; &quot;Sons&quot; &lt;\$&amp; Ltd&gt;"/,
    );
  assert.equal(reads, 1);
});

test('the files of the console are compressed, and cached forever', async (t) => {
  const service = serviceWithoutDatabase();
  const app = buildServer(service);
  t.after(() => app.close().then(() => service.db.close()));
  const manifest = await readManifest();
  for (const file of filesOf(manifest, ['index.html'])) {
    for (const [accepted, encoding] of [
      ['br, gzip', 'br'],
      ['gzip', 'gzip'],
      ['identity', undefined],
    ]) {
      const { statusCode, headers } = await app.inject({
        url: `/console/${file}`,
        headers: { 'accept-encoding': accepted },
      });
      assert.equal(statusCode, 200);
      assert.equal(headers['content-encoding'], encoding, `${file} for ${accepted}`);
      assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable');
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['cross-origin-resource-policy'], 'same-origin');
      // What a page loads has the policies of the page, and is never asked for again.
      const needless = [...FOR_PAGES, 'etag', 'last-modified', 'accept-ranges'].filter(
        (name) => name in headers,
      );
      assert.deepEqual(needless, [], file);
    }
  }
  // None of them could be opened as a page that has scripts, or loads something.
  const files = await readdir(new URL('assets/', DIST));
  assert.deepEqual(
    files.filter((name) => !/\.(js|css|json)(\.br|\.gz)?$/.test(name)),
    [],
  );
  const missing = await app.inject({ url: '/console/assets/none.js' });
  assert.equal(missing.statusCode, 404);
  assert.equal(missing.headers['cache-control'], 'no-store');
  assert.match(String(missing.headers['content-security-policy']), /^default-src 'none'/);
  assert.equal(missing.json().statusCode, '98', missing.body);
});

test('a page loads few bytes, in few files', async () => {
  const manifest = await readManifest();
  const [texts, frame] = ['src/i18n/en.ts', 'src/ui/shell.tsx'];
  const names = 'src/i18n/en.labels.ts';
  // Loaded with the frame, for the moment when a session ends.
  const again = 'src/ui/sign-in-again.tsx';
  for (const [door, api, home] of [
    ['index.html', 'generated/operator.json', 'src/pages/overview.tsx'],
    ['portal.html', 'generated/portal.json', 'src/portal-pages/home.tsx'],
  ] as const) {
    const signIn = filesOf(manifest, [door, texts]);
    const size = await sizeOf(signIn);
    assert.ok(
      size <= 145 * KB && signIn.size <= 7,
      `the sign-in loads ${size} bytes in ${signIn.size} files`,
    );
    const first = filesOf(manifest, [door, texts, names, frame, again, api, home]);
    const sizeOfFirst = await sizeOf(first);
    assert.ok(
      sizeOfFirst <= 245 * KB && first.size <= 22,
      `the first page loads ${sizeOfFirst} bytes in ${first.size} files`,
    );
    const framed = filesOf(manifest, [door, texts, names, frame, again]);
    for (const page of Object.keys(manifest).filter((name) => /^src\/(portal-)?pages\//.test(name))) {
      const own = filesOf(manifest, [page]);
      for (const file of framed) own.delete(file);
      const more = await sizeOf(own);
      assert.ok(more <= 40 * KB, `${page} loads ${more} bytes beside the frame`);
    }
  }
  // The chart is loaded after the page.
  const chart = filesOf(manifest, ['src/charts/chart.tsx']);
  for (const file of filesOf(manifest, ['index.html', frame])) chart.delete(file);
  const size = await sizeOf(chart);
  assert.ok(size <= 20 * KB, `a chart loads ${size} bytes`);
  const all = await sizeOf(filesOf(manifest, Object.keys(manifest)));
  assert.ok(all <= 520 * KB, `all of it is ${all} bytes`);
});

/** The keys with the types of their values. */
function keysOf(texts: object, path = ''): string[] {
  return Object.entries(texts).flatMap(([name, value]) =>
    typeof value === 'object' && !Array.isArray(value)
      ? keysOf(value, `${path}${name}.`)
      : [`${path}${name} ${typeof value}`],
  );
}

/** Without the codes: those of refusals are declared with them. */
const withoutCodes = ({ codes, ...texts }: typeof en) => texts;

test('every language has every text', () => {
  assert.deepEqual(keysOf(withoutCodes(de)).sort(), keysOf(withoutCodes(en)).sort());
  const empty = (texts: object) => JSON.stringify(texts).includes('""');
  assert.deepEqual([empty(en), empty(de)], [false, false]);
});

/** The text of all pages, forms and parts of the console. */
async function readPages(): Promise<string> {
  const folder = new URL('../../console/src/', import.meta.url);
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.tsx'));
  return (await Promise.all(files.map((name) => readFile(new URL(name, folder), 'utf8')))).join('');
}

test('every change that an operator can make has a button on a page', async () => {
  const pages = await readPages();
  const isOffered = (name: string) => new RegExp(`(['"])${name}\\1`).test(pages);
  const changes = OPERATIONS.flatMap(({ effect, name }) => (effect === 'read' ? [] : [name]));
  assert.deepEqual(
    changes.filter((name) => !isOffered(name)),
    [],
  );
});

test('every action of a page has a German text, and every field of its form a German label', async () => {
  const used = new Set(
    (await readPages()).match(/(?<=\b(?:name|act|create): '|\bcreate=")[a-z-]+\.[a-z0-9-]+(?=['"])/g),
  );
  assert.ok(used.size > 50);
  const known = new Map([...OPERATIONS, ...PORTAL_OPERATIONS].map((each) => [each.name, each]));
  for (const name of used) {
    const operation = known.get(name) ?? assert.fail(`there is no operation ${name}`);
    assert.ok(german.actions[name] && (hints[name] || !help[name]), `${name} has no German text`);
    for (const field of Object.keys(operation.input.properties))
      assert.ok(german.fields[field], `the field ${field} of ${name} has no German label`);
  }
});

test('a German help for fields of one name serves only those that the schemas describe in one way', () => {
  const described = new Map<string, Set<string>>();
  const known = new Set<string>();
  for (const { name: operation, input, effect } of [...OPERATIONS, ...PORTAL_OPERATIONS]) {
    known.add(operation);
    for (const [name, { description = '' }] of Object.entries<{ description?: string }>(input.properties)) {
      for (const each of [name, `${operation}.${name}`]) known.add(each);
      if (effect === 'read' || hints[`${operation}.${name}`] !== undefined) continue;
      described.set(name, (described.get(name) ?? new Set()).add(description));
    }
  }
  const shared = Object.keys(hints).filter((name) => (described.get(name)?.size ?? 0) > 1);
  assert.deepEqual(shared, []);
  assert.deepEqual(
    Object.keys(hints).filter((name) => !known.has(name)),
    [],
  );
});

function plainFieldsOf(schema: object): string[] {
  const { properties = {} } = schema as { properties?: Record<string, { type?: string | string[] }> };
  const isPlain = (type: string) => ['string', 'number', 'integer', 'boolean'].includes(type);
  return Object.entries(properties).flatMap(([name, { type }]) =>
    [type ?? []].flat().some(isPlain) ? [name] : [],
  );
}

const itemsOf = (schema: object) =>
  (schema as { properties?: { items?: { items?: object } } }).properties?.items?.items ?? {};

test('every English label has a German one', () => {
  const missing = (['fields', 'actions', 'nouns', 'checks'] as const).flatMap((each) =>
    Object.keys(english[each]).filter((name) => !(name in german[each])),
  );
  missing.push(...Object.keys(en.codes).filter((code) => !(code in de.codes)));
  const all = [...OPERATIONS, ...PORTAL_OPERATIONS];
  // A list shows the columns of its operation or plain fields of its items, a page those of its thing.
  const columns = all.flatMap((each) => each.columns ?? []);
  const items = all.flatMap(({ output }) => plainFieldsOf(itemsOf(output)));
  const plain = all
    .filter(({ name }) => name.endsWith('.show'))
    .flatMap(({ output }) => plainFieldsOf(output));
  // Where the next page begins is not shown.
  const shown = new Set([...columns, ...items, ...plain].filter((name) => name !== 'nextCursor'));
  missing.push(...[...shown].filter((name) => !(name in german.fields)));
  assert.deepEqual(missing, []);
});

/** From this many fields on, a form has sections. */
const LONG_FORM = 9;

test('a long form has sections, with each of its fields in one of them', () => {
  const used = new Set<string>();
  const isAsked = (schema: object) => !('x-asked' in schema && schema['x-asked'] === false);
  // These have no form, or one of their own.
  const others = /^(voucher\.(find|bulk.*)|approval\..*|till\..*|bank\.import)$/;
  for (const { name, path, effect, input } of OPERATIONS) {
    const inPath = parametersOf(path);
    const fields = Object.entries<object>(input.properties).filter(([field]) => !inPath.includes(field));
    const asked = fields.filter(([, schema]) => isAsked(schema));
    for (const [, schema] of asked) if ('x-section' in schema) used.add(String(schema['x-section']));
    if (effect === 'read' || asked.length < LONG_FORM || others.test(name)) continue;
    const loose = asked.filter(([field, schema]) => field !== 'reason' && !('x-section' in schema));
    assert.deepEqual(loose, [], name);
  }
  assert.deepEqual([...used].sort(), Object.keys(en.sections).sort());
});

/** The reasons why figures have no entries, in what operations and reports declare. */
function reasonsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const own = 'none' in value && typeof value.none === 'string' ? [value.none] : [];
  return [...own, ...Object.values(value).flatMap(reasonsIn)];
}

test('every reason why a figure has no entries is told in German', () => {
  const declared = OPERATOR_APIS.map((api) => describeApi(api));
  const reasons = new Set(reasonsIn([...declared, UNDECLARED]));
  assert.ok(reasons.size > 30);
  assert.deepEqual(Object.keys(unopened).sort(), [...reasons].sort());
});

/** The names of the values in a sentence. */
const valuesOf = (sentence: string | undefined) => (sentence?.match(/(?<=\{)\w+(?=\})/g) ?? []).sort();

test('whatever the doctor finds and advises is said in German, with the same values', () => {
  const sentences: Readonly<Record<string, string>> = { ...FOUND, ...ADVICE };
  assert.equal(Object.keys(sentences).length, Object.keys(FOUND).length + Object.keys(ADVICE).length);
  assert.deepEqual(Object.keys(findings).sort(), Object.keys(sentences).sort());
  for (const [name, sentence] of Object.entries(sentences))
    assert.deepEqual(valuesOf(findings[name]), valuesOf(sentence), name);
});

/** The source of the service. */
async function readSource(): Promise<string> {
  const folder = new URL('../../src/', import.meta.url);
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts'));
  // Tills have their own clients, and the sandbox has no page.
  const ofPeople = files.filter((name) => !/^http\/(variant|sandbox|wire)/.test(name));
  return (await Promise.all(ofPeople.map((name) => readFile(new URL(name, folder), 'utf8')))).join('');
}

test('every sentence that refuses something, and every rule of a field, is told in German', async () => {
  const source = await readSource();
  const literal = /new Problem\(\s*'[\w-]+',\s*((?:(?:'[^'\n]*'|`(?:[^`$]|\$\{[^{}`]*\})*`)\s*\+?\s*)+)/g;
  const sentences = [...source.matchAll(literal)].map(([, text = '']) =>
    text.replaceAll(/['`]\s*\+\s*['`]|^['`]|['`]\s*$/g, '').replaceAll(/\$\{[^}]*\}/g, '{}'),
  );
  assert.ok(sentences.length > 60, String(sentences.length));
  // No page gets those of the command line, and none is made of values alone.
  const isShown = (sentence: string) =>
    !sentence.includes('--break-glass') && !/^(batch )?\{\}( is \{\}:)? \{\}$/.test(sentence);
  assert.deepEqual(
    sentences.filter((sentence) => isShown(sentence) && !refusalOf(sentence, String)),
    [],
  );
  for (const [english, text] of Object.entries(refusals))
    assert.ok(text.split('{}').length <= english.split('{}').length, english);
  assert.equal(refusalOf('endpoint 7 is off: enable it first', String)?.includes('Endpunkt 7 ist aus'), true);
  const broken = /(?:\binvalid\(\s*[^,()]+(?:\([^)]*\))?,\s*|\brule: )'([\w-]+)'/g;
  const rules = new Set([...source.matchAll(broken)].map(([, rule = '']) => rule));
  assert.ok(rules.size > 40, String(rules.size));
  assert.deepEqual(
    [...rules].filter((rule) => !(rule in faults)),
    [],
  );
});

test('every code of a problem has a sentence in German, and every change of the audit a name', async () => {
  const codes = [...Object.keys(TITLES), ...PRECEDENCE, '96'];
  assert.deepEqual(Object.keys(problems).sort(), codes.sort());
  assert.ok(Object.values(faults).every(Boolean));
  const audited = new Set((await readSource()).match(/(?<=\baction: ')[a-z-]+\.[a-z0-9-]+(?=')/g));
  assert.ok(audited.size > 40, String(audited.size));
  const nameless = [...audited].filter((name) => !(name in german.actions));
  assert.deepEqual(nameless, []);
});
