import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { CHANGED, digestOf } from '../../bench/measured.ts';

/** Figures say when the code that they measure has changed since. */

const PAGE = new URL('../../docs/explanation/performance.md', import.meta.url);
const MARK = /^<!-- measures ([^:]+):\s(\w+)\s-->$/m;
/** What a change brought when it was made is history. */
const HISTORY = ['What helped', 'What did not help', 'Method'];

const page = await readFile(PAGE, 'utf8');
const sections = page
  .split(/^#{2,3} /m)
  .map((text) => ({ heading: text.slice(0, text.indexOf('\n')), text }))
  .filter(({ heading, text }) => (/^\|.*--:/m.test(text) || MARK.test(text)) && !HISTORY.includes(heading));

test('there are sections with figures', () => {
  assert.ok(sections.length > 10);
});

for (const { heading, text } of sections)
  test(`the figures of "${heading}" are of today's code, or say that it has changed`, () => {
    const [, paths = '', digest] = MARK.exec(text) ?? assert.fail('it needs a mark (bench/measured.ts)');
    const today = digestOf(paths.split(/\s/));
    const isOf = digest === today;
    assert.equal(
      text.includes(CHANGED),
      !isOf,
      `say ${CHANGED} below its mark, or measure again, and mark the figures with ${today} and without it`,
    );
  });
