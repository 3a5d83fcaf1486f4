import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { SourceFile } from '../support/tidy.rule.ts';
import { LATER, OUTSIDE, RULES } from '../support/tidy.ts';

const ROOT = new URL('../../', import.meta.url);
const FOLDERS = [
  ...['src', 'sql', 'test', 'bench', 'model', 'soak', 'mutation', 'bin', 'docs', '.ci'],
  ...['sdk', 'conformance', 'verifier', 'embedded', 'print'],
];
/** Built and third-party files. */
const FOREIGN =
  /^(sdk|conformance|mutation)\/(dist|node_modules|results|package-lock)|^test\/\w+\/installed\//;
const TEXT = /\.(ts|js|cjs|sql|md|json|ya?ml)$|^\.ci\/run$/;

async function readProject(): Promise<SourceFile[]> {
  const paths = (await readdir(ROOT)).filter((name) => TEXT.test(name) && name !== 'package-lock.json');
  for (const folder of FOLDERS) {
    const found = await readdir(new URL(folder, ROOT), { recursive: true }).catch(() => []);
    paths.push(
      ...found.map((name) => `${folder}/${name}`).filter((path) => TEXT.test(path) && !FOREIGN.test(path)),
    );
  }
  return Promise.all(
    paths.map(async (path) => ({ path, text: await readFile(new URL(path, ROOT), 'utf8') })),
  );
}

const file = (path: string, text = ''): SourceFile => ({ path, text });
const lines = (count: number) => '  step();\n'.repeat(count);

/** For each rule: files that break it, each on its own, and files close to them that do not. */
const EXAMPLES: Record<keyof typeof RULES, { broken: SourceFile[][]; fine: SourceFile[] }> = {
  'imports point one way': {
    broken: [
      [file('src/vouchers/balance.ts', "import { redeem } from '../redemptions/redeem.ts';")],
      [file('src/refusal.ts', "import type { Money } from './money.ts';")],
      [file('src/ledger/post.ts', "import {\n  one,\n  two,\n} from '../merchants/keys.ts';")],
      [file('src/db/pool.ts', "const later = await import('../http/server.ts');")],
      [file('src/jobs/work.ts', "export { serve } from '../cli/serve.ts';")],
      [file('src/http/server.ts', "import { start } from '../../test/start.ts';")],
      [file('src/unknown/one.ts')],
    ],
    fine: [
      file('src/main.ts', "import { serve } from './cli/serve.ts';"),
      file('src/http/variant-a.ts', "import { redeem } from '../redemptions/redeem.ts';"),
      file(
        'src/batches/fill.ts',
        "import { update } from '../redemptions/update.ts';\nimport { join } from 'node:path';",
      ),
    ],
  },
  'parts form no circle': {
    broken: [
      [
        file('src/books/days.ts', "import type { Account } from '../bank/accounts.ts';"),
        file('src/bank/accounts.ts', "import { today } from '../books/days.ts';"),
      ],
      [
        file('src/audit/audit.ts', "import { run } from '../jobs/jobs.ts';"),
        file('src/jobs/jobs.ts', "import { zone } from '../ledger/zone.ts';"),
        file('src/ledger/ledger.ts', "const later = await import('../audit/audit.ts');"),
      ],
    ],
    fine: [
      file(
        'src/books/days.ts',
        "import { accounts } from '../bank/accounts.ts';\nimport { a } from './a.ts';",
      ),
      file('src/books/a.ts', "import { b } from './days.ts';"),
      file('src/bank/accounts.ts', "import { sql } from '../db/sql.ts';"),
    ],
  },
  'SQL only in templates tagged sql, src/db and sql/': {
    broken: [
      [file('src/http/health.ts', "await db.query('select 1');")],
      [file('src/vouchers/balance.ts', 'const text = `\nwith asked as (select 1) select * from asked`;')],
    ],
    fine: [
      file('src/ledger/post.ts', 'await db.query(sql`select 1`);'),
      file('src/ledger/post.ts', "const HOT = { name: 'post', text: 'select post($1)' };"),
      file('src/db/pool.ts', "await db.query('select 1');"),
      file('src/cli/serve.ts', "say('update it'); say('with one as an example');"),
    ],
  },
  'Fastify only in src/http': {
    broken: [
      [file('src/cli/serve.ts', "import Fastify from 'fastify';")],
      [file('src/cli/serve.ts', "import files from '@fastify/static';")],
    ],
    fine: [file('src/http/server.ts', "import Fastify from 'fastify';")],
  },
  'the driver only in src/db': {
    broken: [[file('src/jobs/jobs.ts', "import pg from 'pg';")]],
    fine: [file('src/db/pool.ts', "import pg from 'pg';")],
  },
  'a statement stands beside its only caller': {
    broken: [
      [
        file('src/bank/list.ts', 'export const FIND = sql`select 1`;'),
        file('src/bank/bank.ts', "import { FIND } from './list.ts';\nawait db.query(FIND);"),
      ],
      [
        file('src/bank/list.ts', 'export function find(): Sql {\n  return sql`select 1`;\n}'),
        file('src/bank/bank.ts', "import { find } from './list.ts';\nawait db.query(find());"),
      ],
    ],
    fine: [
      file('src/bank/list.ts', 'export const FIND = sql`select 1`;\nexport const ALL = sql`select 2`;'),
      file('src/bank/bank.ts', "import { FIND } from './list.ts';\nawait db.query(FIND);"),
      file('src/bank/match.ts', "import { FIND } from './list.ts';\nawait db.query(FIND);"),
    ],
  },
  'a row has the names of the API': {
    broken: [
      [file('src/bank/bank.ts', 'type Row = {\n  readonly made_at: Date;\n};')],
      [file('src/bank/bank.ts', 'db.query<{ id: string; made_at: Date }>(sql`select id, made_at from one`)')],
    ],
    fine: [
      file('src/bank/bank.ts', 'db.query<{ madeAt: Date }>(sql`select made_at as "madeAt" from one`)'),
      file('src/ledger/claims.ts', 'type Row = { readonly made_at: Date };'),
    ],
  },
  'a noun has no layers': {
    broken: ['queries', 'list.queries', 'bank-schema', 'bank-operations'].map((name) => [
      file(`src/bank/${name}.ts`),
    ]),
    fine: [file('src/bank/bank.ts'), file('src/schema.ts'), file('src/operations/perform.ts')],
  },
  'priorities only in src/priority.ts': {
    broken: [[file('src/cli/backup.ts', "import { setPriority } from 'node:os';")]],
    fine: [file('src/priority.ts', 'setPriority(nice);'), file('src/cli/backup.ts', 'lowerPriority(10);')],
  },
  'the environment only in src/config.ts': {
    broken: [
      [file('src/log.ts', "const level = process.env['LEVEL'];")],
      [file('src/log.ts', "import { argv, env } from 'node:process';")],
    ],
    fine: [file('src/config.ts', 'read(process.env)')],
  },
  'policies for browsers begin in src/http/headers.ts': {
    broken: [[file('src/http/sandbox.ts', "header('content-security-policy', \"default-src 'none'\")")]],
    fine: [file('src/http/sandbox.ts', "header('content-security-policy', policyOf({ 'img-src': '*' }))")],
  },
  'regular expressions are literals': {
    broken: [[file('src/json.ts', "const STRING = new RegExp('a+$');")]],
    fine: [file('src/json.ts', 'const STRING = /a/;'), file('src/bank/match.ts', 'new RegExp(escaped)')],
  },
  'packages stand alone': {
    broken: [
      [file('sdk/src/scrip.ts', "import { join } from 'node:path';")],
      [file('sdk/src/scrip.ts', "import { Refusal } from '../../src/refusal.ts';")],
      [file('sdk/src/scrip.ts', "import { table } from './cli/table.ts';")],
      [file('sdk/src/scrip.ts', "import ky from 'ky';")],
      [file('sdk/src/cli/main.ts', "import { Command } from 'commander';")],
      [file('conformance/src/run.ts', "import { Scrip } from '@scrip/client';")],
      [file('embedded/use.ts', "import { SERVICE_ROLE } from '../src/db/pool.ts';")],
      [file('print/card.ts', "import { start } from '@scrip/embedded';")],
    ],
    fine: [
      file('sdk/src/scrip.ts', "import { Caller } from './call.ts';"),
      file(
        'sdk/src/cli/main.ts',
        "import { Scrip } from '../scrip.ts';\nimport { argv } from 'node:process';",
      ),
      file('conformance/src/run.ts', "import { parseArgs } from 'node:util';"),
      file('embedded/use.ts', "import pg from 'pg';\nimport { lockFolder } from './lock.ts';"),
    ],
  },
  'the verifier runs on Node 20': {
    broken: [[file('verifier/bin/scrip-verifier.js', 'await Array.fromAsync(names, read);')]],
    fine: [
      file('verifier/bin/scrip-verifier.js', 'await Promise.all(names.map(read));'),
      file('src/cli/commands.ts', 'await Array.fromAsync(items);'),
    ],
  },
  'functions of at most 70 lines': {
    broken: [
      [file('src/log.ts', `function long() {\n${lines(69)}}\n`)],
      [file('src/log.ts', `const long = (one: number): Promise<void> => {\n${lines(69)}};\n`)],
      [
        file(
          'src/log.ts',
          `export async function long(\n  one: string,\n  two: string,\n): Promise<void> {\n${lines(66)}}\n`,
        ),
      ],
      [file('test/log.test.ts', `it('goes on and on', async () => {\n${lines(69)}});\n`)],
    ],
    fine: [
      file('src/log.ts', `function short() {\n${lines(68)}}\n\nconst list = {\n${lines(100)}};\n`),
      file('test/log.test.ts', `describe('a log', () => {\n${lines(100)}});\n`),
    ],
  },
  'files of at most 500 lines': {
    broken: [[file('src/log.ts', lines(501))], [file('sql/001-core.sql', lines(501))]],
    fine: [file('src/log.ts', lines(500)), file('README.md', lines(501))],
  },
  'nothing is left for later': {
    broken: LATER.map((word) => [file('docs/start.md', `${word}: more`)]),
    fine: [file('docs/start.md', 'Nothing.')],
  },
  'no default exports': {
    broken: [[file('src/log.ts', 'export default function log() {}')]],
    fine: [file('src/log.ts', 'export function log() {}')],
  },
  'no enums': {
    broken: [
      [file('src/log.ts', 'enum Level { one }')],
      [file('src/log.ts', 'export const enum Level { one }')],
    ],
    fine: [file('src/log.ts', "const word = { enum: ['one'] };")],
  },
  'state belongs to a service': {
    broken: [
      [file('src/api-keys/cache.ts', 'const caches = new WeakMap<Service, Map<string, Entry>>();')],
      [file('src/jobs/queue.ts', 'export const waiting = new Map();')],
      [file('src/jobs/queue.ts', 'let running = 0;')],
    ],
    fine: [
      file('src/api-keys/cache.ts', 'const cacheOf = kept(() => new Map());'),
      file('src/jobs/queue.ts', 'function run() {\n  let running = 0;\n  const waiting = new Map();\n}'),
      file('src/money.ts', "const KNOWN = new Set(['USD']);"),
      file('src/time.ts', 'const days = new Map<number, string>();'),
    ],
  },
  'every test runs': {
    broken: ['only', 'skip'].map((word) => [file('test/log.test.ts', `it.${word}('logs', () => {});`)]),
    fine: [file('test/log.test.ts', "it('logs', () => {});")],
  },
  'no internals of others': {
    broken: [
      [file('src/http/server.ts', 'server._events = {};')],
      [file('src/db/pool.ts', 'const { length } = pool._clients;')],
      [file('src/db/pool.ts', 'pool.connect = async () => client;')],
      [file('src/http/server.ts', 'socket.resume = () => socket;')],
      [file('embedded/use.ts', 'EventEmitter.prototype.emit = mine;')],
      [file('src/http/server.ts', 'const [key] = Object.getOwnPropertySymbols(server);')],
    ],
    fine: [
      file('src/http/server.ts', 'server.keepAliveTimeout = 72_000;'),
      file('src/db/pool.ts', 'this.#pool = pool;'),
    ],
  },
  'plain words': {
    broken: [
      [file('src/log.ts', '/** Whoever asks is told. */')],
      [file('src/log.ts', '// It is sealed anew.')],
      [file('sql/001-core.sql', '-- It tells the time.')],
      [file('docs/start.md', 'Run `scrip keys rotate`.')],
      [file('README.md', 'The batcher gathers calls.')],
      [file('src/batches/fill.ts', 'const MOST_AT_ONCE = 2;')],
      [file('src/db/batcher.ts', 'type Pace = { width: number };')],
      [file('sdk/src/call.ts', 'call.settle();')],
    ],
    fine: [
      file('src/log.ts', '// The two cannot be told apart.'),
      file('src/books/settle.ts', '// Settles what the operator owes.'),
      file('test/log.test.ts', "it('tells', () => {});"),
      file('docs/start.md', 'The key ring: run `scrip keyring rotate`. Show the most.'),
    ],
  },
  'lines of at most 110 columns': {
    broken: [
      [file('src/log.ts', `// ${'word '.repeat(22)}`)],
      [file('src/log.ts', `const one = ${'1 + '.repeat(30)}1;`)],
      [file('sql/001-core.sql', `select ${'one, '.repeat(22)}two;`)],
      [file('src/bank/bank.ts', `sql\`\nselect ${'one, '.repeat(22)}\${two}\``)],
      [file('docs/start.md', 'word '.repeat(23))],
    ],
    fine: [
      file('src/log.ts', `const text = '${'word '.repeat(30)}';`),
      file('docs/start.md', `| ${'word '.repeat(30)}|\n\`\`\`sh\n${'word '.repeat(30)}\n\`\`\``),
      file('docs/start.md', 'ü'.repeat(110)),
    ],
  },
  'no drawers': {
    broken: ['utils', 'helpers', 'common', 'shared'].map((folder) => [file(`src/${folder}/one.ts`)]),
    fine: [file('src/ledger/post.ts')],
  },
  'nothing refers to the outside': {
    broken: [[file('docs/start.md', `See ${OUTSIDE}/paper.md.`)]],
    fine: [file('docs/start.md', 'It is a shared service.')],
  },
  'variants only in src/http': {
    broken: [[file('src/ledger/post.ts', '// Variant A only.')]],
    fine: [file('src/http/variant-a.ts', '// variant A'), file('src/ledger/post.ts', '// It is invariant.')],
  },
  'migrations are numbered without a gap': {
    broken: [
      [file('sql/001-core.sql'), file('sql/003-webhooks.sql')],
      [file('sql/001-core.sql'), file('sql/001-more.sql')],
      [file('sql/core.sql')],
    ],
    fine: [file('sql/001-core.sql'), file('sql/002-webhooks.sql')],
  },
  'migrations begin with a comment': {
    broken: [[file('sql/001-core.sql', 'create table one (id integer);')]],
    fine: [file('sql/001-core.sql', '-- 001: the core.\ncreate table one (id integer);')],
  },
  'migrations on which older programs work only add': {
    broken: [
      'drop table one;',
      'alter table one drop column two;',
      'alter table one drop constraint three;',
      'alter table one rename column two to three;',
      'alter table one alter column two type bigint;',
      'alter table one alter two set not null;',
      'alter table one add column two integer not null;',
      'alter table one add constraint two check (three > 0);',
      'drop function one(integer);',
      'revoke select on one from scrip_service;',
      'delete from one;',
    ].map((text) => [file('sql/023-next.sql', `-- 023: next.\n-- Works from: 022\n${text}`)]),
    fine: [
      file('sql/023-next.sql', '-- 023: next.\ndrop table one;'),
      file(
        'sql/024-more.sql',
        `-- 024: does not drop anything.\n-- Works from: 022
        create table one (two integer not null, constraint three check (two > 0));
        alter table four add column five integer, add column six integer not null default 0;
        alter table four alter column seven drop not null;
        alter table four add constraint eight check (five > 0) not valid;`,
      ),
    ],
  },
  'migrations keep to what all databases share': {
    broken: [
      'create index one on two using gist (three);',
      'alter table one add exclude using btree (two with =);',
      'alter table one add unique (two) deferrable initially deferred;',
      'create table one () inherits (two);',
      'lock table one;',
      'create table one (two integer generated always as (three + 1) stored);',
    ].map((text) => [file('sql/001-core.sql', text)]),
    fine: [
      file(
        'sql/001-core.sql',
        '-- no lock table, no using gist\ncreate table one (id int generated always as identity);',
      ),
    ],
  },
};

describe('the house rules', async () => {
  const project = await readProject();
  for (const [name, rule] of Object.entries(RULES)) {
    const { broken, fine } = EXAMPLES[name as keyof typeof RULES];
    it(`"${name}" finds violations, and nothing else`, () => {
      for (const files of broken) assert.notDeepEqual(rule(files), [], `not found: ${JSON.stringify(files)}`);
      assert.deepEqual(rule(fine), []);
    });
    it(`"${name}" holds in the project`, () => {
      assert.deepEqual(rule(project), []);
    });
  }
});
