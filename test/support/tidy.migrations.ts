/** The house rules for migrations (STYLE.md, "Migrations"). */

import { forbid, type Rule, type SourceFile } from './tidy.rule.ts';

const isMigration = ({ path }: SourceFile) => /^sql\/[^/]+\.sql$/.test(path);

export const migrationsAreNumbered: Rule = (files) =>
  files
    .filter(isMigration)
    .map(({ path }) => path)
    .sort()
    .filter((path, index) => !path.startsWith(`sql/${String(index + 1).padStart(3, '0')}-`))
    .map((path) => `${path} leaves a gap or has no number of three digits`);

export const migrationsExplain: Rule = (files) =>
  files
    .filter((file) => isMigration(file) && !file.text.startsWith('-- '))
    .map(({ path }) => `${path} does not begin with a comment: what, why, which locks, how long`);

const PARTICULAR =
  /\busing\s+gist\b|\bexclude\s+(?:using\b|\()|\bdeferrable\b|\binherits\b|\block\s+table\b|\bgenerated\s+always\s+as\s*\(/gi;

/** Comments may name what the statements may not use. */
const withoutComments = ({ path, text }: SourceFile): SourceFile => ({
  path,
  text: text.replace(/--.*$/gm, '').replace(/\/\*[\s\S]*?\*\//g, ''),
});

export const migrationsArePortable: Rule = (files) =>
  forbid(
    PARTICULAR,
    'is not shared by all databases that speak PostgreSQL',
    isMigration,
  )(files.map(withoutComments));

/** Statements that drop, rename or narrow something that the previous release uses. */
const CONTRACTION = new RegExp(
  [
    'drop\\s+(?!default\\b|not\\s+null\\b)',
    'rename\\s+(?:to|column|constraint)\\b',
    'alter\\s+(?:column\\s+)?\\w+\\s+(?:set\\s+data\\s+)?type\\b',
    'set\\s+not\\s+null',
    'revoke',
    'truncate',
    'delete\\s+from',
    // A row of an older program does not have the column.
    'add\\s+column\\s+(?![^,;]*\\bdefault\\b)[^,;]*\\bnot\\s+null\\b',
    // Old rows would be read under a lock, and an older program may write what it refuses.
    'add\\s+constraint\\b(?![^;]*\\bnot\\s+valid\\b)',
  ]
    .map((each) => `\\b${each}`)
    .join('|'),
  'gi',
);

/** A migration with "Works from" an older version may only add. */
export const migrationsOnlyAdd: Rule = (files) =>
  forbid(
    CONTRACTION,
    'takes something away that programs of an older version use: leave out "Works from", or do it a release later',
    isMigration,
  )(files.filter(({ text }) => /^-- Works from: /m.test(text)).map(withoutComments));
