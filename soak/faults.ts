import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openOwner, type Queries } from '../src/db/pool.ts';
import type { Way } from '../test/way.ts';
import type { Disk } from './disk.ts';
import type { Hooks } from './hooks.ts';
import type { Supervised } from './process.ts';
import type { Random } from './random.ts';

/** Everything that can break, and is mended again. */

export type Stand = {
  readonly folder: string;
  /** Straight to the database, as its owner; the services take `way`. */
  readonly ownerUrl: string;
  readonly way: Way;
  readonly services: readonly Supervised[];
  readonly worker: Supervised;
  readonly hooks: Hooks;
  /** The database's own, where the machine has let us mount one. */
  readonly disk: Disk | undefined;
  readonly random: Random;
};

type Fault = {
  readonly name: string;
  readonly run: (stand: Stand) => Promise<void>;
  /** Only where the database has a disk of its own. */
  readonly needsDisk?: boolean;
};

const raw = (text: string) => ({ text, values: [] });
const SHORT_MS = 1_500;
const STEPS_MS = [-7_200_000, -1_000, 5_000, 3_600_000];
/** More connections than the server takes. */
const CONNECTIONS = 120;

async function withOwner(url: string, run: (owner: Queries) => Promise<void>): Promise<void> {
  const owner = await openOwner(url);
  try {
    await run(owner);
  } finally {
    await owner.close();
  }
}

const CUT_ALL = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'scrip-serve%'";

/** The first disk of a server that is full is told by this error, from every statement that writes. */
const FILL_DISK = `
create or replace function scrip.soak_disk_full() returns trigger language plpgsql as
  $$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
create or replace trigger soak_disk_full before insert on scrip.journal for each statement execute function scrip.soak_disk_full();
create or replace trigger soak_disk_full before insert on scrip.vouchers for each statement execute function scrip.soak_disk_full()`;
const EMPTY_DISK = 'drop function if exists scrip.soak_disk_full() cascade';

export const FAULTS: readonly Fault[] = [
  { name: 'service killed', run: async ({ services, random }) => random.pick(services).signal('SIGKILL') },
  { name: 'worker killed', run: async ({ worker }) => worker.signal('SIGKILL') },
  {
    name: 'database killed',
    async run({ folder }) {
      const file = await readFile(join(folder, 'postgres', 'postmaster.pid'), 'utf8');
      process.kill(Number(file.split('\n')[0]), 'SIGKILL');
    },
  },
  { name: 'connections cut', run: async ({ way }) => way.cut() },
  { name: 'database out of reach', run: ({ way }) => during(way, 'closed') },
  { name: 'database paused', run: ({ way }) => during(way, 'paused') },
  { name: 'answers of the database lost', run: ({ way }) => during(way, 'silent') },
  { name: 'connections lost without a word', run: ({ way }) => during(way, 'lost') },
  { name: 'database slow', run: ({ way }) => during(way, 'slow') },
  {
    name: 'connections exhausted',
    async run({ ownerUrl }) {
      const url = new URL(ownerUrl);
      const taken = await Promise.allSettled(Array.from({ length: CONNECTIONS }, () => openOwner(url.href)));
      const open = taken.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
      await open[0]?.query(raw(CUT_ALL));
      await sleep(SHORT_MS);
      await Promise.all(open.map((each) => each.close()));
    },
  },
  {
    name: 'no byte left on the disk',
    needsDisk: true,
    async run({ disk }) {
      await disk?.fill();
      await sleep(2 * SHORT_MS);
      await disk?.empty();
    },
  },
  {
    name: 'disk full, as the server tells it',
    async run({ ownerUrl }) {
      await withOwner(ownerUrl, (owner) => owner.query(raw(FILL_DISK)).then(() => {}));
      await sleep(SHORT_MS);
      await mendDisk(ownerUrl);
    },
  },
  {
    name: 'service stopped for a while',
    async run({ services, random }) {
      const service = random.pick(services);
      service.signal('SIGSTOP');
      await sleep(SHORT_MS);
      service.signal('SIGCONT');
    },
  },
  {
    name: 'clock set',
    run: async ({ services, random }) => random.pick(services).setClock(random.pick(STEPS_MS)),
  },
  { name: 'receiver of webhooks fails', run: ({ hooks }) => receiver(hooks, 'failing') },
  { name: 'receiver of webhooks hangs', run: ({ hooks }) => receiver(hooks, 'hanging') },
  { name: 'receiver of webhooks away', run: ({ hooks }) => receiver(hooks, 'away') },
  { name: 'service asked to stop', run: async ({ services, random }) => random.pick(services).signal('SIGTERM') },
];

/** Those after which the database is back at the moment in which they end, or (killed) is started by what watches over it. */
export const ABSENCES = [
  'database killed',
  'connections cut',
  'database out of reach',
  'database paused',
  'answers of the database lost',
  'connections lost without a word',
];

async function during(way: Way, state: 'closed' | 'paused' | 'silent' | 'slow' | 'lost'): Promise<void> {
  way.set(state);
  await sleep(SHORT_MS);
  // What was swallowed does not come any more: who waits for it has to be cut off.
  if (state === 'silent') way.cut();
  way.set('open');
}

async function receiver(hooks: Hooks, state: Parameters<Hooks['set']>[0]): Promise<void> {
  await hooks.set(state);
  await sleep(SHORT_MS);
  await hooks.set('well');
}

/** Whatever state the database is in, until it is there and has room again. */
export async function mendDisk(ownerUrl: string): Promise<void> {
  for (;;) {
    try {
      return await withOwner(ownerUrl, (owner) => owner.query(raw(EMPTY_DISK)).then(() => {}));
    } catch {
      await sleep(200);
    }
  }
}
