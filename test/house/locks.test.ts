import assert from 'node:assert/strict';
import { glob, readFile } from 'node:fs/promises';
import { test } from 'node:test';

/** The advisory locks of Scrip by their numbers, with the files that take each of them. */
const LOCKS: Readonly<Record<string, readonly string[]>> = {
  // The schema.
  7311990001: ['src/db/distribute.ts', 'src/db/migrate.ts'],
  // The chain of the audit.
  7311990002: ['src/audit/audit.ts'],
  // The key ring.
  7311990003: ['sql/012-vouchers.sql', 'src/rotation/rotate.ts'],
  // The partitions.
  7311990004: ['sql/004-partitions.sql', 'sql/021-declines.sql'],
  // The keeping of the books.
  7311990014: ['src/books/close.ts'],
  // The matching of bank lines.
  7311990017: ['src/bank/match.ts'],
  // The settings.
  7311990021: ['src/settings/settings.ts'],
  // The publication of the books.
  7311990022: ['src/books/publish.ts'],
};

test('each advisory lock has a number of its own', async () => {
  const found: Record<string, string[]> = {};
  for await (const path of glob('{src,sql,embedded}/**/*.{ts,sql}', {
    cwd: new URL('../..', import.meta.url),
  }))
    for (const number of new Set(
      (await readFile(new URL(`../../${path}`, import.meta.url), 'utf8')).match(/\b7311\d+\b/g),
    ))
      found[number] = [...(found[number] ?? []), path].sort();
  assert.deepEqual(found, LOCKS);
});
