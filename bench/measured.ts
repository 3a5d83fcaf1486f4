import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { filled } from './figures.ts';

/**
 * The age of figures. A section with figures names the files that it measures, with their digest at that
 * time: `<!-- measures sql/006-redeem.sql src/redemptions: 0123456789ab -->`. Once they have changed, the
 * section must say so. The files of a section are those that decide on its figures, not all that are run.
 */

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const DIGITS = 12;

/** What a section says whose code is not the measured one any more. */
export const CHANGED = '**The code has changed since.**';
/** The digest of figures from before there were digests. */
export const UNKNOWN = 'unknown';

const REDEEM = [
  'sql/005-rules.sql',
  'sql/006-redeem.sql',
  'src/redemptions/redeem.ts',
  'src/ledger/booking.ts',
  'src/ledger/claims.ts',
  'src/db/batcher.ts',
  'src/db/rounds.ts',
  'src/http/routes.ts',
];
const OVERLOAD = [...REDEEM, 'src/http/overload.ts'];

/** The files that each part of the report measures. */
export const MEASURED = {
  operations: [
    ...REDEEM,
    'sql/007-activate.sql',
    'sql/009-update-redemption.sql',
    'sql/010-balance.sql',
    'sql/011-transactions.sql',
    'src/ledger/transaction.ts',
    'src/ledger/transactions.ts',
  ],
  generate: ['sql/012-vouchers.sql', 'src/batches/generate.ts', 'src/batches/fill.ts', 'src/batches/rows.ts'],
  download: ['src/batches/download.ts', 'src/batches/rows.ts'],
  latency: REDEEM,
  beyond: OVERLOAD,
  crowds: OVERLOAD,
  processes: [...REDEEM, 'src/cli/processes.ts'],
  start: ['src/cli/serve.ts', 'src/cli/open.ts'],
  growth: [...REDEEM, 'sql/001-core.sql', 'sql/010-balance.sql'],
  bloat: [...REDEEM, 'sql/001-core.sql'],
  timing: [
    ...['sql/005-rules.sql', 'sql/006-redeem.sql', 'sql/007-activate.sql', 'sql/010-balance.sql'],
    ...['src/vouchers/look-up.ts', 'src/vouchers/balance.ts', 'src/vouchers/activate.ts'],
    ...['src/redemptions/redeem.ts', 'src/api-keys/authenticate.ts', 'src/http/routes.ts'],
  ],
  proof: [
    ...['sql/014-books.sql', 'sql/025-seals.sql', 'src/books/close.ts', 'src/books/proof.ts'],
    ...['src/books/export.rows.ts', 'verifier/verify.js', 'verifier/python/verify.py'],
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** Lines of comments, imports, and the list of a module's operations: they do not change what is measured. */
const UNMEASURED = {
  ts: /^[ \t]*(\/\*\*[\s\S]*?\*\/|\/\/.*)\n|^import [^;]*;\n|^\nexport const OPERATIONS = [^;]*;\n/gm,
  sql: /^[ \t]*--.*\n/gm,
};

/** Returns the code of a file as its digest knows it. */
export function measuredCode(path: string, text: string): string {
  const kind = /\.(ts|sql)$/.exec(path)?.[1] as keyof typeof UNMEASURED | undefined;
  return kind ? text.replaceAll(UNMEASURED[kind], '') : text;
}

/** @throws Error for a path that is no file and no folder with files */
export function digestOf(paths: readonly string[]): string {
  const hash = createHash('sha256');
  for (const path of paths) {
    const files = globSync([path, `${path}/**/*.{ts,tsx,sql}`], { cwd: ROOT }).filter((each) =>
      /\.\w+$/.test(each),
    );
    if (files.length === 0) throw new Error(`there is no file ${path}`);
    for (const file of files.sort())
      hash.update(file).update(measuredCode(file, readFileSync(`${ROOT}${file}`, 'utf8')));
  }
  return hash.digest('hex').slice(0, DIGITS);
}

/**
 * Returns the mark of figures, and the sentence that they need.
 * @param digest of the files when they were measured
 */
export function markOf(paths: readonly string[], digest: string): string {
  const mark = filled(`<!-- measures ${paths.join(' ')}: ${digest} -->`);
  return digest === digestOf(paths) ? mark : `${mark}\n\n${CHANGED}`;
}
