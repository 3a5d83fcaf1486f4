import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { DAY_MS, isoDay } from '../src/time.ts';
import { commandOn, findYesterday, prepareDay } from './books.ts';
import { print, whole } from './figures.ts';
import { type Given, numberOf } from './scenario.ts';
import { Stage } from './stage.ts';
import { type Watched, watchProgram } from './usage.ts';

/** The two programs that verify a proof, each with the file alone. */
const VERIFIERS = {
  JavaScript: [process.execPath, '../verifier/bin/scrip-verifier.js'],
  Python: ['python3', '../verifier/python/verify.py'],
} as const;

const MB = 1_000_000;

/** The processor time does not depend on other work on the machine. */
const tell = (what: string, rows: number, { seconds, cpuSeconds, mostMb }: Watched) =>
  print(
    `${what}: ${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of its processor, ${mostMb} MB, ` +
      `${((1e6 * seconds) / rows).toFixed(1)} \u00b5s a row`,
  );

/** The close of a large day, the export of its proof, and both programs that verify it. */
export async function run(given: Given): Promise<void> {
  const rows = numberOf(given, 'rows');
  const yesterday = findYesterday();
  const stage = await Stage.open();
  await prepareDay(stage, yesterday, { rows, merchants: 1, vouchers: 0, isQuiet: true });
  tell(`close of a day with ${whole(rows)} rows`, rows, await commandOn(stage, 'books', 'close'));

  const file = join(stage.folder, 'proof.txt');
  const days = ['--from', isoDay(yesterday), '--to', isoDay(yesterday + DAY_MS)];
  const proved = ['books', 'export', '--format', 'proof', ...days];
  tell('export', rows, await commandOn(stage, ...proved, '--out', file));
  print(`  ${((await stat(file)).size / MB).toFixed(0)} MB`);
  for (const [name, [program, script]] of Object.entries(VERIFIERS)) {
    const path = fileURLToPath(new URL(script, import.meta.url));
    tell(`verified in ${name}`, rows, await watchProgram(program, [path, file]));
  }

  const { rows: middle } = await stage.owner.query(
    'select id from journal where occurred_at >= $1 order by id limit 1',
    [new Date(yesterday + DAY_MS / 2)],
  );
  const oneRow = join(stage.folder, 'one-row.txt');
  await commandOn(stage, ...proved, '--transaction', String(middle[0]?.id), '--out', oneRow);
  const one = await readFile(oneRow);
  const hidden = [...one.toString().matchAll(/^- \d+ (\S+)$/gm)];
  const hashes = hidden.reduce((sum, [, base64 = '']) => sum + Math.floor((base64.length * 3) / 4 / 32), 0);
  print(`one row: ${one.length} bytes, ${gzipSync(one).length} compressed, ${hashes} hashes`);
}
