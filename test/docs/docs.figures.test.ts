import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { CHANGED, digestOf, measuredCode } from '../../bench/measured.ts';

/** Figures say when the code that they measure has changed since. */

const PAGES = ['performance', 'guessing', 'testing'];
const MARK = /^<!-- measures ([^:]+):\s(\w+)\s-->$/m;
/** What a change brought when it was made is history; odds are computed, and not measured. */
const OTHERS = ['What was compared', 'What helped', 'What did not help', 'Method', 'The odds'];

async function sectionsOf(name: string) {
  const page = await readFile(new URL(`../../docs/explanation/${name}.md`, import.meta.url), 'utf8');
  return page
    .split(/^#{2,4} /m)
    .map((text) => ({ name, heading: text.slice(0, text.indexOf('\n')), text }))
    .filter(({ heading, text }) => (/^\|.*-:/m.test(text) || MARK.test(text)) && !OTHERS.includes(heading));
}

const sections = (await Promise.all(PAGES.map(sectionsOf))).flat();

test('there are sections with figures', () => {
  assert.ok(sections.length > 20);
});

for (const { name, heading, text } of sections)
  test(`the figures of "${heading}" (${name}) are of today's code, or say that it has changed`, () => {
    const [, paths = '', digest] = MARK.exec(text) ?? assert.fail('it needs a mark (bench/measured.ts)');
    const today = digestOf(paths.split(/\s/));
    const isOf = digest === today;
    assert.equal(
      text.includes(CHANGED),
      !isOf,
      `say ${CHANGED} below its mark, or measure again, and mark the figures with ${today} and without it`,
    );
  });

test('comments and imports do not make figures older, and any other line does', () => {
  const code =
    "import { one,\n  two } from './a.ts';\n/**\n * Why.\n */\nconst sum = one + two;\n  // and\nrun(sum);\n";
  assert.equal(measuredCode('a.ts', code), 'const sum = one + two;\nrun(sum);\n');
  assert.equal(measuredCode('a.sql', '-- why\nselect 1; -- one\n  -- and\n'), 'select 1; -- one\n');
  assert.equal(measuredCode('a.py', '# why\n'), '# why\n');
});
