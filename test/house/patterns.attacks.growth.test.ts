import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { assertLinear } from '../support/growth.ts';
import { type Attack, attacksOn, patternsIn, readPattern } from '../support/patterns.ts';

/** No regular expression of the service takes more than linear time, whatever text it is given. */

const SOURCE = new URL('../../src/', import.meta.url);
const LONGEST = 64 * 1_024;

/** Quadratic work on a text of this length takes far longer than this time. */
const SCREENED = { length: 16 * 1_024, microseconds: 2_000 };

/** Expressions that never see what others have written: they read the page of the documentation. */
const REVIEWED = new Set([String.raw`/<script(?![^>]*\bsrc=)[^>]*>([\s\S]*?)<\/script>/g`]);

const working = (expression: RegExp, text: string) => () => text.replace(expression, '');

/** Returns the texts on which an expression may not be linear: those that take long. */
function* suspectsOf(expression: RegExp): Generator<Attack> {
  for (const attack of attacksOn(expression)) {
    const work = working(expression, attack.text(SCREENED.length));
    const before = process.cpuUsage();
    work();
    if (process.cpuUsage(before).user > SCREENED.microseconds) yield attack;
  }
}

test('every regular expression of the service takes linear time', async () => {
  const names = (await readdir(SOURCE, { recursive: true })).filter((name) => name.endsWith('.ts'));
  const patterns = new Set<string>();
  for (const name of names)
    for (const each of patternsIn(await readFile(new URL(name, SOURCE), 'utf8'))) patterns.add(each);
  assert.ok(patterns.size > 100, `${patterns.size} expressions were found`);
  assert.ok(REVIEWED.isSubsetOf(patterns), 'an expression that was reviewed is gone');
  for (const pattern of patterns.difference(REVIEWED)) {
    const expression = readPattern(pattern);
    for (const { name, text } of suspectsOf(expression))
      await assertLinear(`${pattern} on ${name}`, LONGEST, (length) => working(expression, text(length)));
  }
});

test('an expression that is not linear is suspected', () => {
  const broken = [
    String.raw`/("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?/g`,
    String.raw`/\s+$/`,
    '/%.*$/',
    '/^[.-]+|[.-]+$/g',
    String.raw`/<script[^>]*>([\s\S]*?)<.script>/`,
    String.raw`/^(\w*)(\w*)$/`,
  ];
  for (const pattern of broken) assert.ok(suspectsOf(readPattern(pattern)).next().value, pattern);
});
