import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { isSaid, rowsOf, subjectOf } from '../../console/src/ui/change-rows.ts';
import { wordsOf } from '../../console/src/ui/words-of.ts';
import { PORTAL_OPERATIONS } from '../../src/operations/portal.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { parametersOf } from '../../src/schema.ts';
import { LANGUAGES, writeChange, writingIn } from '../support/written-changes.ts';

/**
 * Every change that the audit can record, as the console writes it: with labels, words, names and currencies.
 * The changes are made from the inputs of the operations; cli.audit.commands.test.ts has those of a service.
 */

type Schema = {
  readonly type?: string | readonly string[];
  readonly pattern?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly examples?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly secret?: boolean;
  readonly stdin?: boolean;
  readonly 'x-asked'?: boolean;
  readonly 'x-format'?: string;
};

const AMOUNT = 'EUR 1250.50';
const isMoney = (name: string) => writingIn('en').shapeOf(name).isMoney;

/** A value as the audit would have it: amounts with their currency, ids and codes without names. */
function sampleOf(schema: Schema): unknown {
  const { type, examples = [], anyOf = [], items, properties } = schema;
  if (schema['x-format'] === 'merchant') return '5';
  if (schema['x-format'] === 'product') return 'GIFT-EUR';
  const word = schema.const ?? schema.enum?.find((each) => each !== null);
  if (word !== undefined) return word;
  const choice = anyOf.find(({ type: each }) => each !== 'null');
  if (choice) return sampleOf({ ...choice, examples });
  const types = [type].flat();
  if (types.includes('object'))
    return Object.fromEntries(Object.entries(properties ?? {}).map(([name, each]) => [name, sampleOf(each)]));
  if (types.includes('array')) return [sampleOf(items ?? {})];
  if (examples[0] !== undefined) return examples[0];
  if (types.includes('boolean')) return true;
  return types.includes('integer') || types.includes('number') ? 3 : 'Spring';
}

/** What no entry has among its fields: secrets, how an answer is made, and the reason, which is apart. */
const UNRECORDED = ['cursor', 'dryRun', 'masked', 'pin', 'reason'];

/** The fields of an operation that its entry may have: not what names the subject, and no secrets. */
function fieldsOf({ path, input }: (typeof OPERATIONS)[number]): Record<string, unknown> {
  const left = new Set([...parametersOf(path), ...UNRECORDED]);
  const all = (input as Schema).properties ?? {};
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, schema]) =>
      left.has(name) || schema.secret || schema.stdin || schema['x-asked'] === false
        ? []
        : [[name, isMoney(name) ? AMOUNT : sampleOf(schema)]],
    ),
  );
}

const all = [...OPERATIONS, ...PORTAL_OPERATIONS];
const audited = Map.groupBy(
  all.filter(({ audit }) => audit !== null),
  ({ audit }) => audit ?? '',
);

test('every change of the audit is written with labels, words, names and currencies', () => {
  assert.ok(audited.size > 85, String(audited.size));
  const written = [...audited].flatMap(([action, operations]) =>
    operations.flatMap((operation) => {
      const fields = fieldsOf(operation);
      return [writeChange(action, {}, fields), writeChange(action, fields, {})];
    }),
  );
  assert.deepEqual(
    written.flatMap(({ wrong }) => wrong),
    [],
  );
  for (const amount of ['EUR\u00a01,250.50', '1.250,50\u00a0EUR']) {
    const texts = written.flatMap((each) => each.texts).filter((text) => text === amount);
    assert.ok(texts.length > 40, `${amount}: ${texts.length}`);
  }
});

test('every change of the audit has a name', async () => {
  const folder = new URL('../../src/', import.meta.url);
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts'));
  const texts = await Promise.all(files.map((name) => readFile(new URL(name, folder), 'utf8')));
  const written = texts.join('').match(/(?<=\baction: ')[a-z-]+\.[a-z0-9-]+(?=')/g) ?? [];
  for (const action of new Set([...audited.keys(), ...written]))
    for (const language of LANGUAGES) {
      const title = wordsOf(writingIn(language).labels).title(action);
      assert.match(title, /^\p{Lu}[^.]*: \p{L}[^.]+$/u, `${action} in ${language}`);
      assert.doesNotMatch(title, /: [a-z]+-[a-z]+$/, `${action} in ${language}`);
    }
});

test('what a change is about has a name, if one is known', () => {
  const writing = writingIn('en');
  const shown = (of: string, within?: object) => {
    const { noun, name, id } = subjectOf(writing, of, within);
    return `${noun} ${name ?? id}`;
  };
  assert.equal(shown('merchant 5'), 'Merchant Kyoto Tea House');
  assert.equal(shown('product GIFT-EUR'), 'Product Gift card');
  assert.equal(shown('user 7'), 'User ann@example.com');
  assert.equal(shown('settlement 12', { number: '5-2026-0001' }), 'Settlement 5-2026-0001');
  assert.equal(shown('bank account House'), 'Bank account House');
  assert.equal(shown('voucher 10000029156'), 'Voucher 10000029156');
});

test('an amount without a currency is written as it is, never as minor units', () => {
  const writing = writingIn('de');
  const [row] = rowsOf(writing, { maxValue: 'EUR 500.00' }, { maxValue: 'EUR 600.00' });
  assert.deepEqual([row?.old, row?.now], ['500,00\u00a0EUR', '600,00\u00a0EUR']);
  const [bare] = rowsOf(writing, { maxValue: 500 }, { maxValue: 600, currency: 'JPY' });
  assert.deepEqual([bare?.old, bare?.now], ['500\u00a0JPY', '600\u00a0JPY']);
});

test('a proposal leaves out only what its sentence says under the same name', () => {
  const statement = { merchant: 'Kiosk', commission: 5, amount: 'EUR 12.50', reference: 'paid in' };
  const said = { commission: 5, amount: 12.5, currency: 'EUR', reference: 'paid in' };
  const unsaid = { vat: 5, delayDays: 12.5, currency: 'USD', comment: 'paid in', merchantId: '5' };
  const isLeftOut = ([field, value]: [string, unknown]) => isSaid(statement, field, value);
  assert.deepEqual(Object.entries(said).filter(isLeftOut), Object.entries(said));
  assert.deepEqual(Object.entries(unsaid).filter(isLeftOut), []);
});
