import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findProblems } from '../release/check.ts';
import { findUndecidedLicenses } from '../release/licenses.ts';

test('every dependency has a license that Scrip may be shipped with', async () => {
  assert.deepEqual(await findUndecidedLicenses(), []);
});

test('a release with placeholders in it is refused', async () => {
  const problems = await findProblems();
  for (const path of ['package.json', 'SECURITY.md', 'CODE_OF_CONDUCT.md', 'sdk/package.json'])
    assert.ok(
      problems.some((each) => each.startsWith(`${path} holds a placeholder`)),
      path,
    );
  // Nothing else of the packages is missing.
  assert.deepEqual(
    problems.filter((each) => /lacks|has version/.test(each)),
    [],
  );
});
