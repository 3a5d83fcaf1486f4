import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';

export type Yardstick = {
  readonly url: string;
  readonly seconds: number;
  readonly merchantId: number;
  readonly firstSerial: bigint;
  readonly lastSerial: bigint;
};

/** The best of these is what counts: a server of two cores is busy with eight clients, and slower with many more. */
const CLIENTS = [8, 16, 32];

/** Redemptions a second by single calls of the stored function in yardstick.sql, prepared, over as many connections. */
export async function yardstick(plan: Yardstick): Promise<number> {
  const figures: number[] = [];
  for (const clients of CLIENTS) figures.push(hasPgbench() ? await pgbench(plan, clients) : await loop(plan, clients));
  return Math.max(...figures);
}

function hasPgbench(): boolean {
  return spawnSync('pgbench', ['--version'], { stdio: 'ignore' }).status === 0;
}

async function pgbench(
  { url, seconds, merchantId, firstSerial, lastSerial }: Yardstick,
  clients: number,
): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-pgbench-'));
  try {
    const script = join(folder, 'redeem.sql');
    await writeFile(
      script,
      `\\set serial random(${firstSerial}, ${lastSerial})
\\set reference random(1, 9000000000000000)
select bench.redeem(${merchantId}, :serial, (:reference)::text, 1);
`,
    );
    const args = ['-n', '-M', 'prepared', '-f', script, '-c', String(clients), '-j', '2', '-T', String(seconds), url];
    const { stdout } = await promisify(execFile)('pgbench', args);
    return Number(/tps = ([\d.]+)/.exec(stdout)?.[1]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function loop(
  { url, seconds, merchantId, firstSerial, lastSerial }: Yardstick,
  clients: number,
): Promise<number> {
  const until = Date.now() + seconds * 1000;
  const range = Number(lastSerial - firstSerial) + 1;
  let done = 0;
  const work = async (): Promise<void> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    while (Date.now() < until) {
      const serial = firstSerial + BigInt(Math.floor(Math.random() * range));
      const values = [merchantId, serial, `${Math.random()}`];
      await client.query({ name: 'redeem', text: 'select bench.redeem($1, $2, $3, 1)', values });
      done++;
    }
    await client.end();
  };
  await Promise.all(Array.from({ length: clients }, work));
  return done / seconds;
}
