/**
 * The house rules that a program can check (STYLE.md gives their reasons). Each rule is a pure function
 * from files to findings, so that tidy.test.ts can show that it finds violations.
 */

import { readFileSync } from 'node:fs';
import {
  migrationsAreNumbered,
  migrationsArePortable,
  migrationsExplain,
  migrationsOnlyAdd,
} from './tidy.migrations.ts';
import { forbid, type Rule, type SourceFile } from './tidy.rule.ts';
import { WORDS } from './words.ts';

const LONGEST_FUNCTION = 70;
const LONGEST_FILE = 500;
const WIDEST_LINE = 110;

/**
 * The rows of parts in STYLE.md, from the top to the bottom: a part imports from its own row and from those
 * below it, never from one above.
 */
const ROWS = [
  ...readFileSync(new URL('../../STYLE.md', import.meta.url), 'utf8').matchAll(/^ {2}\| \d+ \| (.+) \|$/gm),
].map(([, parts = '']) => [...parts.matchAll(/`([^`]+)`/g)].map(([, part = '']) => part));

/**
 * Files with state of the whole process: known answers of functions that depend on their arguments only, and
 * what a process or a machine has one of: ids in order, cores, the command line.
 */
const OF_PROCESS = [
  ...['db/sql', 'keyring/sealed', 'log', 'time'],
  ...['batches/rows.worker', 'cli/usage', 'db/health', 'ledger/id', 'people/password'],
].map((name) => `src/${name}.ts`);

const isSource = ({ path }: SourceFile) => path.startsWith('src/') && path.endsWith('.ts');
const isCode = ({ path }: SourceFile) => path.endsWith('.ts') || path.endsWith('.cjs');

/** The part of src/ that a file belongs to: its folder, or its own name. */
function partOf(path: string): string {
  return (path.split('/')[1] ?? '').replace(/\.ts$/, '');
}

/** The imports and re-exports of a file, as written. */
function importsOf(text: string): string[] {
  const found = text.matchAll(
    /^\s*(?:import|export|\}).*?\bfrom '([^']+)'|\bimport\('([^']+)'\)|^import '([^']+)'/gm,
  );
  return [...found].map((hit) => hit[1] ?? hit[2] ?? hit[3] ?? '');
}

const importsPointOneWay: Rule = (files) =>
  files.filter(isSource).flatMap(({ path, text }) => {
    const row = (part: string) => ROWS.findIndex((parts) => parts.includes(part));
    const from = partOf(path);
    if (row(from) < 0) return [`${path} belongs to no row: src/ has ${ROWS.flat().join(', ')}`];
    return targetsOf(path, text).flatMap((target) => {
      const to = partOf(target);
      if (!target.startsWith('src/')) return [`${path} imports ${target} from outside src/`];
      if (row(to) < 0) return [`${path} imports ${target}, which belongs to no row`];
      return row(to) < row(from) ? [`${path} imports ${target}: ${from} stands below ${to}`] : [];
    });
  });

/** The files of the project that a file imports. */
const targetsOf = (path: string, text: string) =>
  importsOf(text)
    .filter((name) => name.startsWith('.'))
    .map((name) => new URL(name, `file:///${path}`).pathname.slice(1));

/** The types of what the batcher is counted and traced by. At run time, `db` imports nothing of `monitor`. */
const TYPES_OF_MONITOR = /^import type [^;]*'\.\.\/monitor\/[^;]*;/gm;

const partsFormNoCircle: Rule = (files) => {
  const below = new Map<string, Set<string>>();
  for (const { path, text } of files.filter(isSource)) {
    const own = below.get(partOf(path)) ?? new Set();
    const counted = partOf(path) === 'db' ? text.replace(TYPES_OF_MONITOR, '') : text;
    for (const target of targetsOf(path, counted))
      if (partOf(target) !== partOf(path)) own.add(partOf(target));
    below.set(partOf(path), own);
  }
  /** The parts that a part imports, directly or through others. */
  const reached = (part: string) => {
    const all = new Set<string>(below.get(part));
    for (const each of all) for (const next of below.get(each) ?? []) all.add(next);
    return all;
  };
  return [...below.keys()].flatMap((part) =>
    [...(below.get(part) ?? [])]
      .filter((other) => reached(other).has(part))
      .map((other) => `${part} imports ${other}, which leads back to ${part}`),
  );
};

function importOnlyIn(packages: RegExp, folder: string, message: string): Rule {
  return (files) =>
    files
      .filter((file) => isSource(file) && !file.path.startsWith(folder))
      .flatMap(({ path, text }) =>
        importsOf(text)
          .filter((name) => packages.test(name))
          .map((name) => `${path} imports ${name}: ${message}`),
      );
}

/** The imports that the files of a package may have. */
const PACKAGES: readonly (readonly [path: RegExp, allowed: RegExp, message: string])[] = [
  // The client needs neither Node nor the service; only its command line needs Node.
  [/^sdk\/src\/(?!cli\/|node\/)/, /^\.\/(?!cli\/|node\/)/, 'the client stands alone'],
  [/^sdk\/src\/(cli|node)\/(?!prove\.ts)/, /^(\.|\.\.)\/|^node:/, 'the client stands alone'],
  // Only this command verifies proofs.
  [/^sdk\/src\/cli\/prove\.ts/, /^\.\/|^node:|^@scrip\/verifier\/settlement$/, 'the client stands alone'],
  // Independent of the service and of the client, since it checks servers.
  [/^conformance\/src\//, /^\.\/|^node:/, 'the conformance kit stands alone'],
  [/^(embedded|print)\//, /^(?!\.\.|@scrip\/)/, 'the package knows nothing of the service'],
];

const packagesStandAlone: Rule = (files) =>
  files.filter(isCode).flatMap(({ path, text }) =>
    PACKAGES.filter(([own]) => own.test(path)).flatMap(([, allowed, message]) =>
      importsOf(text)
        .filter((name) => !allowed.test(name))
        .map((name) => `${path} imports ${name}: ${message}`),
    ),
  );

/** Statements of the hot path are plain texts with names, beside their parameters. */
const sqlIsTagged = forbid(
  /(?<!sql|raw\(|text: ?\n? *)(?:['"]|`)\s*(?:select\s+\S|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s|with\s+\w+\s+as\s+(?:materialized\s+)?\(|(?:create|alter|drop)\s+(?:table|index|role|schema)\s)/g,
  'SQL stands in a template that is tagged sql',
  ({ path, ...file }) => isSource({ path, ...file }) && !path.startsWith('src/db/'),
);

/** Exported statements, and functions that only return one. */
const STATEMENT =
  /^export (?:const (\w+)(?:: Sql)? = (?:\([^)]*\)(?:: Sql)? =>\s*)?sql`|function (\w+)\([^{]*\): Sql \{\n {2}(?:const [^\n]*\n {2})*return sql`)/gm;

const statementsStandBesideTheirCaller: Rule = (files) => {
  const sources = files.filter(isSource);
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(STATEMENT)].flatMap(([, constant, made]) => {
      const name = constant ?? made ?? '';
      const uses = (each: SourceFile) => each.text.split(/\W+/).filter((word) => word === name).length;
      const callers = sources.filter((each) => uses(each) > Number(each.path === path));
      const [caller] = callers;
      return callers.length === 1 && caller && caller.path !== path
        ? [`${path} exports the statement ${name}: it belongs to ${caller.path}, its only caller`]
        : [];
    }),
  );
};

/** Rows that a function of the hot path returns, and those made of them. */
const HOT_ROWS = [
  'ledger/booking',
  'ledger/claims',
  'ledger/transaction',
  'vouchers/balance',
  'webhooks/outbox',
];

/** The name of a column in the type of a row. */
const rowsHaveTheNamesOfTheApi = forbid(
  /\breadonly [a-z]+(?:_[a-z]+)+\??:|<\{[^{}\n]*\b[a-z]+(?:_[a-z]+)+: /g,
  'names a column in the type of a row: give it the name of the API in the statement (`as "madeAt"`)',
  (file) => isSource(file) && !HOT_ROWS.some((name) => file.path === `src/${name}.ts`),
);

const nounsHaveNoLayers: Rule = (files) =>
  files.flatMap(({ path }) =>
    isSource({ path, text: '' }) && /(\/|\.)queries\.ts$|-(schema|operations)\.ts$/.test(path)
      ? [`${path} is a layer: schema, statements and operations of a noun stand in the file of the noun`]
      : [],
  );

/** The length of each function, by its indentation, which the formatter keeps. */
const functionsAreShort: Rule = (files) => files.filter(isCode).flatMap(longFunctions);

function longFunctions({ path, text }: SourceFile): string[] {
  const lines = text.split('\n');
  const indentOf = (line: string) => line.length - line.trimStart().length;
  return lines.flatMap((line, index) => {
    const opens =
      /(=>|\)|\)(?: is|:) [^=]*) \{$/.test(line) &&
      !/^\s*(\} )?(if|else|for|while|switch|catch|do|try)\b/.test(line);
    if (!opens || /\bdescribe\(/.test(line)) return [];
    const indent = indentOf(line);
    // A signature of several lines closes at the indentation at which it began.
    let start = index;
    if (/^\s*\)/.test(line))
      while (start > 0 && (start === index || indentOf(lines[start] ?? '') > indent)) start--;
    const length = lines.slice(index + 1).findIndex((each) => each.trim() !== '' && indentOf(each) <= indent);
    const total = index - start + 2 + length;
    return total > LONGEST_FUNCTION
      ? [`${path}:${start + 1} is a function of ${total} lines, above ${LONGEST_FUNCTION}`]
      : [];
  });
}

const filesAreShort: Rule = (files) =>
  files
    .filter((file) => isCode(file) || file.path.endsWith('.sql'))
    .map(({ path, text }) => ({ path, lines: text.trimEnd().split('\n').length }))
    .filter(({ lines }) => lines > LONGEST_FILE)
    .map(({ path, lines }) => `${path} has ${lines} lines, above ${LONGEST_FILE}`);

/** Spelled in parts, here and in the test, so that these files do not break the rule themselves. */
export const LATER = [
  ['TO', 'DO'],
  ['FIX', 'ME'],
  ['XX', 'X'],
  ['HA', 'CK'],
].map((parts) => parts.join(''));
export const OUTSIDE = ['..', 'shared'].join('/');

const noDrawers: Rule = (files) =>
  files
    .filter(({ path }) => /(^|\/)(utils?|helpers?|common|shared)\//.test(path))
    .map(({ path }) => `${path} lies in a drawer: a folder is a noun of the domain`);

/**
 * The files that people read: the source, the documents and all texts of the program. Not the tests, and
 * no generated file.
 */
const isRead = ({ path }: SourceFile) =>
  /^(src|sql|docs|bin|sdk|conformance|embedded|print)\/|^[A-Z]+\.md$/.test(path) &&
  !/\.json$|\/package\.json$/.test(path) &&
  !/^docs\/reference\/(variant-|llms|glossary)/.test(path);

const plainWords: Rule = (files) =>
  WORDS.flatMap(([words, instead, except]) => {
    const flags = /[A-Z]/.test(words) ? 'g' : 'gi';
    const pattern = new RegExp(`(?<![\\w-])(?:${words})(?![\\w-])`, flags);
    return forbid(
      pattern,
      `has a word that we do not use: ${instead}`,
      (file) => isRead(file) && !except?.test(file.path),
    )(files);
  });

/** Text that no formatter can break: strings and patterns. Its length does not count. */
const UNBREAKABLE = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`|\/(?![/*])(?:[^/\\]|\\.)+\/\w*/g;

/** The lines of the statements of a file. */
function linesOfStatements(text: string): ReadonlySet<number> {
  const lineAt = (at: number) => text.slice(0, at).split('\n').length - 1;
  return new Set(
    [...text.matchAll(/\bsql`[^`]*`/g)].flatMap(({ 0: statement, index }) =>
      statement.split('\n').map((_line, below) => lineAt(index) + below),
    ),
  );
}

/** The width of lines. Tables and code of Markdown, and strings, cannot be wrapped. */
const linesAreNarrow: Rule = (files) =>
  files
    .filter((file) => isCode(file) || /\.(sql|md)$/.test(file.path))
    .filter(({ path }) => !/^docs\/reference\/(variant-|llms)/.test(path))
    .flatMap(({ path, text }) => {
      const statements = path.endsWith('.ts') ? linesOfStatements(text) : new Set<number>();
      return (
        path.endsWith('.md')
          ? text.replace(/^ *```[\s\S]*?^ *```/gm, (code) => code.replace(/.+/g, ''))
          : text
      )
        .split('\n')
        .flatMap((line, index) => {
          if ([...line].length <= WIDEST_LINE) return [];
          const isTable = path.endsWith('.md') && /^\s*\|/.test(line);
          const isComment = /^\s*(\*|\/\/|\/\*\*|--)/.test(line);
          const bare = path.endsWith('.md') || isComment ? line : line.replace(UNBREAKABLE, "''");
          // A text of several lines with values in it, which is not SQL.
          const isText = line.includes('${') && !statements.has(index);
          const isWide = [...bare].length > WIDEST_LINE && !isTable && !isText && !/^\s*\S+$/.test(line);
          return isWide ? [`${path}:${index + 1} is wider than ${WIDEST_LINE} columns`] : [];
        });
    });

const INTERNALS =
  /\b[a-z]\w*\._[a-z]\w*|\bgetOwnPropertySymbols\(|\.prototype(\.\w+|\[[^\]]+\]) = |\b(socket|server|parser|client|pool|reply|request|response|raw|agent|stream)\.(\w+\.)*\w+ = (async )?(function\b|\([^)]*\) =>|\w+ =>)/g;

/**
 * The files that build a regular expression, each reviewed: of constants, of an escaped text between two
 * assertions, and of forms of amounts whose repetitions have an end or begin with a separator.
 */
const BUILDS_PATTERNS = ['src/time.ts', 'src/cli/output.ts', 'src/bank/match.ts', 'src/bank/csv.ts'];

/** Every rule, by its name in STYLE.md. */
export const RULES = {
  'imports point one way': importsPointOneWay,
  'parts form no circle': partsFormNoCircle,
  'SQL only in templates tagged sql, src/db and sql/': sqlIsTagged,
  'a statement stands beside its only caller': statementsStandBesideTheirCaller,
  'a row has the names of the API': rowsHaveTheNamesOfTheApi,
  'a noun has no layers': nounsHaveNoLayers,
  'Fastify only in src/http': importOnlyIn(
    /^(@?fastify\b|@scalar\/fastify)/,
    'src/http/',
    'Fastify belongs to src/http/',
  ),
  'the driver only in src/db': importOnlyIn(/^pg(\/|$)/, 'src/db/', 'the driver belongs to src/db/'),
  'priorities only in src/priority.ts': forbid(
    /\bsetPriority\b/g,
    'changes its priority: use lowerPriority, which no refusal stops',
    (file) => isSource(file) && file.path !== 'src/priority.ts',
  ),
  'the environment only in src/config.ts': forbid(
    /\bprocess\.env\b|\benv\b[^}]*\} from 'node:process'/g,
    'reads the environment, which only src/config.ts does',
    (file) => isSource(file) && file.path !== 'src/config.ts',
  ),
  'policies for browsers begin in src/http/headers.ts': forbid(
    /\b(default-src|frame-ancestors)\b/g,
    'writes a policy for browsers: use policyOf, which permits nothing but what is named',
    (file) => isSource(file) && file.path !== 'src/http/headers.ts',
  ),
  'regular expressions are literals': forbid(
    /\bRegExp\(/g,
    'builds a regular expression: write a literal, which the test of linear time finds',
    (file) => isSource(file) && !BUILDS_PATTERNS.includes(file.path),
  ),
  'packages stand alone': packagesStandAlone,
  'the verifier runs on Node 20': forbid(
    /\bArray\.fromAsync\b|\b(Object|Map)\.groupBy\b|\bPromise\.(withResolvers|try)\b|\.(union|difference|intersection)\(/g,
    'needs a later Node than 20, which those who verify may have',
    ({ path }) => path.startsWith('verifier/'),
  ),
  'functions of at most 70 lines': functionsAreShort,
  'files of at most 500 lines': filesAreShort,
  'nothing is left for later': forbid(
    new RegExp(`\\b(${LATER.join('|')})\\b`, 'g'),
    'is left for later: do it, or open an issue',
    () => true,
  ),
  'no default exports': forbid(/^export default\b/gm, 'is a default export', isCode),
  'no enums': forbid(/^(export )?(declare )?(const )?enum\b/gm, 'is an enum', isCode),
  'state belongs to a service': forbid(
    /^(export )?(let |const \w+ = new (WeakMap|Map|Set)(<[^\n]*>)?\(\))/gm,
    'is state of a module: make it a field of the service, by `kept` of src/context.ts',
    (file) => isSource(file) && !OF_PROCESS.includes(file.path),
  ),
  'every test runs': forbid(
    /\.(only|skip|todo)\(/g,
    'leaves tests out',
    ({ path }) => path.startsWith('test/') && isCode({ path, text: '' }),
  ),
  'no internals of others': forbid(
    INTERNALS,
    'reaches into what belongs to Node or a package: use what it documents',
    (file) => isCode(file) && !file.path.startsWith('test/'),
  ),
  'plain words': plainWords,
  'lines of at most 110 columns': linesAreNarrow,
  'no drawers': noDrawers,
  'nothing refers to the outside': forbid(
    new RegExp(OUTSIDE.replaceAll('.', '\\.'), 'g'),
    'refers to what is not part of the project',
    () => true,
  ),
  'variants only in src/http': forbid(
    // Not a uuid's variant, which is another word.
    /\bvariants?[ -][ab]\b/gi,
    'names a variant: only src/http and the lines of the demo know that there are two',
    (file) => isSource(file) && !file.path.startsWith('src/http/') && file.path !== 'src/cli/demo.ts',
  ),
  'migrations are numbered without a gap': migrationsAreNumbered,
  'migrations begin with a comment': migrationsExplain,
  'migrations keep to what all databases share': migrationsArePortable,
  'migrations on which older programs work only add': migrationsOnlyAdd,
} as const satisfies Record<string, Rule>;
