import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { end, started } from '../test/support/leave-nothing.ts';
import { play } from './play.ts';
import { SEPARATOR } from './requests.ts';
import type { Stage } from './stage.ts';

/**
 * Numbers of clients. The best result counts: a server of two cores is busy with eight clients, and slower
 * with many more.
 */
const CLIENTS = [8, 16, 32];
/** The number of clients that keeps bare Fastify busy. */
const BARE_CONNECTIONS = 64;
const BARE_REQUEST = 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';

/** A redemption as one stored function, and as the four statements of a plain transaction; both prepared. */
const SCRIPTS = {
  function: (merchant: number) => `select bench.redeem(${merchant}, :number, (:reference)::text, 1);\n`,
  plain: (merchant: number) => `begin;
select balance_minor, batch_id from scrip.vouchers
  where serial_number >= :number::bigint * 64 and serial_number < (:number::bigint + 1) * 64 for update;
insert into scrip.claims (id, serial_number, merchant_id, operation, reference, fingerprint)
  select uuidv7(), serial_number, ${merchant}, 'redeem', (:reference)::text, '100'
  from scrip.vouchers
  where serial_number >= :number::bigint * 64 and serial_number < (:number::bigint + 1) * 64;
insert into scrip.journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
  serial_number, reference, occurred_at)
  select uuidv7(), 'REDEMPTION', v.serial_number, a.id, 1, 'USD', ${merchant}, v.serial_number,
    (:reference)::text, now()
  from scrip.accounts a, scrip.vouchers v
  where a.merchant_id = ${merchant} and a.kind = 'SETTLEMENT' and a.currency = 'USD'
    and v.serial_number >= :number::bigint * 64 and v.serial_number < (:number::bigint + 1) * 64;
update scrip.vouchers set balance_minor = balance_minor - 1
  where serial_number >= :number::bigint * 64 and serial_number < (:number::bigint + 1) * 64;
end;
`,
} as const;

export type Script = keyof typeof SCRIPTS;

const HAS_PGBENCH = !spawnSync('pgbench', ['--version'], { stdio: 'ignore' }).error;

/** The player of the scripts: pgbench if it is installed, else a loop of the same calls. */
export const DATABASE_GENERATOR = HAS_PGBENCH ? 'pgbench' : 'a loop of calls in Node';

/** Redemptions a second by a script, the best of several numbers of clients. */
export async function yardstick(stage: Stage, script: Script, seconds: number): Promise<number> {
  const figures: number[] = [];
  for (const clients of CLIENTS) figures.push(await playScript(stage, script, seconds, clients));
  return Math.max(...figures);
}

async function playScript(stage: Stage, script: Script, seconds: number, clients: number): Promise<number> {
  const text = SCRIPTS[script](stage.merchantId);
  if (!HAS_PGBENCH) return loop(stage, text, seconds, clients);
  const file = join(stage.folder, `${script}.sql`);
  const numbers = stage.vouchers.map(({ serial }) => serial / 64n).sort((one, other) => Number(one - other));
  const random = `\\set number random(${numbers[0]}, ${numbers.at(-1)})\n\\set reference random(1, 9000000000000000)\n`;
  await writeFile(file, random + text);
  const args = ['-n', '-M', 'prepared', '-f', file, '-c', String(clients), '-j', '2', '-T', String(seconds)];
  const { stdout } = await started(() => promisify(execFile)('pgbench', [...args, stage.embedded.ownerUrl]));
  // "nan" if no transaction ended in time, as on a machine that is busy with other work.
  return Number(/tps = ([\d.]+)/.exec(stdout)?.[1] ?? 0);
}

async function loop(stage: Stage, script: string, seconds: number, clients: number): Promise<number> {
  const until = Date.now() + seconds * 1000;
  const statements = script.split(/;\n/).filter((text) => text.trim() !== '');
  let done = 0;
  const work = async (): Promise<void> => {
    const client = new pg.Client({ connectionString: stage.embedded.ownerUrl });
    await client.connect();
    while (Date.now() < until) {
      const { serial } = stage.vouchers[Math.floor(Math.random() * stage.vouchers.length)] ?? {};
      for (const [index, text] of statements.entries()) {
        // A parameter replaces every occurrence of its name.
        const values: unknown[] = [];
        const at = (value: unknown) =>
          `$${values.includes(value) ? values.indexOf(value) + 1 : values.push(value)}`;
        const reference = `${Math.random()}`;
        const named = text
          .replaceAll(':number', () => `${at((serial ?? 0n) / 64n)}::bigint`)
          .replaceAll(':reference', () => at(reference));
        await client.query({ name: `s${index}`, text: named, values });
      }
      done++;
    }
    await client.end();
  };
  await Promise.all(Array.from({ length: clients }, work));
  return done / seconds;
}

/** Answers a second of bare Fastify, under the same load generator. */
export function bareFastify(stage: Stage, seconds: number): Promise<number> {
  return besideBare(async (url) => {
    const file = join(stage.folder, 'bare.requests');
    await writeFile(file, Array.from({ length: BARE_CONNECTIONS }, () => BARE_REQUEST).join(SEPARATOR));
    const plan = { url, file, connections: BARE_CONNECTIONS };
    await play({ ...plan, seconds: 1 });
    return (await play({ ...plan, seconds })).perSecond;
  });
}

/** Runs some work beside bare Fastify in a process of its own (bare.ts). */
export async function besideBare<Result>(work: (url: string) => Promise<Result>): Promise<Result> {
  const child = started(() =>
    spawn(process.execPath, [join(import.meta.dirname, 'bare.ts')], { stdio: ['ignore', 'pipe', 'inherit'] }),
  );
  try {
    const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
    return await work(chunk.toString().trim());
  } finally {
    await end(child);
  }
}
