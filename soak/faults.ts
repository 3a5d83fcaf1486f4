import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openOwner, type Queries } from '../src/db/pool.ts';
import { HOUR_MS } from '../src/time.ts';
import type { Way } from '../test/support/way.ts';
import type { Disk } from './disk.ts';
import type { Hooks } from './hooks.ts';
import type { Supervised } from './process.ts';
import type { Random } from './random.ts';

/** The faults, each of which is repaired at its end. */

export type Stand = {
  readonly folder: string;
  /** The address of the database for its owner. The services connect through `way`. */
  readonly ownerUrl: string;
  readonly way: Way;
  readonly services: readonly Supervised[];
  readonly worker: Supervised;
  readonly hooks: Hooks;
  /** The disk of the database, where the machine permits to mount one. */
  readonly disk: Disk | undefined;
  readonly random: Random;
  /** Sends each service this many concurrent generations. */
  readonly crowd: (count: number) => Promise<void>;
  /** Evidence that the faults had an effect: the greatest count of each kind. */
  readonly seen: Map<string, number>;
};

type Fault = {
  readonly name: string;
  readonly run: (stand: Stand) => Promise<void>;
  /** Only if the database has a disk of its own. */
  readonly needsDisk?: boolean;
};

const raw = (text: string) => ({ text, values: [] });
const SHORT_MS = 1_500;
/** The last of these is past the expiry of some vouchers (load.ts). */
const STEPS_MS = [-2 * HOUR_MS, -1_000, 5_000, HOUR_MS, 26 * HOUR_MS];
/** Receivers of webhooks accept timestamps up to five minutes in the past or in the future. */
const WORKER_STEPS_MS = [-1_000, 5_000, 240_000];
/** More than the connections of a service for ordinary work and the statements that may wait for one. */
const CROWD = 40;
/** More connections than the server allows. */
const CONNECTIONS = 120;

async function withOwner(url: string, run: (owner: Queries) => Promise<void>): Promise<void> {
  const owner = await openOwner(url);
  try {
    await run(owner);
  } finally {
    await owner.close();
  }
}

const CUT_ALL =
  "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'scrip-serve%'";

/** Blocks all bookings, each in its transaction and on its connection. */
const HOLD = "begin; set local lock_timeout = '5s'; lock table scrip.journal in access exclusive mode";
const COUNT_HELD =
  "select count(*)::int as held from pg_stat_activity where application_name like 'scrip-serve%' and wait_event_type = 'Lock'";

/** Makes statements that write fail with the error of a server whose disk is full. */
const FILL_DISK = [
  `create or replace function scrip.soak_disk_full() returns trigger language plpgsql as
    $$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$`,
  // One at a time: together they could deadlock with a statement that holds one of the tables.
  ...['journal', 'vouchers'].map(
    (table) =>
      `create or replace trigger soak_disk_full before insert on scrip.${table} for each statement execute function scrip.soak_disk_full()`,
  ),
];
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
    async run({ ownerUrl, seen }) {
      const url = new URL(ownerUrl);
      const taken = await Promise.allSettled(Array.from({ length: CONNECTIONS }, () => openOwner(url.href)));
      const open = taken.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
      note(seen, 'connections that the server had no room for', taken.length - open.length);
      await open[0]?.query(raw(CUT_ALL));
      await sleep(SHORT_MS);
      await Promise.all(open.map((each) => each.close()));
    },
  },
  {
    name: 'pools exhausted',
    run: ({ ownerUrl, crowd, seen }) =>
      withOwner(ownerUrl, async (owner) => {
        await owner.query(raw(HOLD));
        const answered = crowd(CROWD);
        await sleep(SHORT_MS);
        const [row] = await owner.query<{ held: number }>(raw(COUNT_HELD));
        note(seen, 'statements held up at one time', row?.held ?? 0);
        await sleep(SHORT_MS);
        await owner.query(raw('commit'));
        await answered;
      }),
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
    name: 'disk full, by an error of the server',
    async run({ ownerUrl }) {
      await withOwner(ownerUrl, async (owner) => {
        for (const text of FILL_DISK) await owner.query(raw(text));
      });
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
    async run({ services, random }) {
      const service = random.pick(services);
      service.setClock(random.pick(STEPS_MS));
      await sleep(SHORT_MS);
      // Until then it books nothing, if its clock is too far from that of the database.
      service.setClock(0);
    },
  },
  {
    name: 'clock of the worker set',
    run: async ({ worker, random }) => worker.setClock(random.pick(WORKER_STEPS_MS)),
  },
  { name: 'receiver of webhooks fails', run: ({ hooks }) => receiver(hooks, 'failing') },
  { name: 'receiver of webhooks hangs', run: ({ hooks }) => receiver(hooks, 'hanging') },
  { name: 'receiver of webhooks away', run: ({ hooks }) => receiver(hooks, 'away') },
  {
    name: 'service asked to stop',
    run: async ({ services, random }) => random.pick(services).signal('SIGTERM'),
  },
];

/**
 * The faults during which the database is away. It is back when the fault ends, or, if it was killed, when
 * its supervisor has started it.
 */
export const ABSENCES = [
  'database killed',
  'connections cut',
  'database out of reach',
  'database paused',
  'answers of the database lost',
  'connections lost without a word',
];

function note(seen: Map<string, number>, name: string, count: number): void {
  seen.set(name, Math.max(seen.get(name) ?? 0, count));
}

async function during(way: Way, state: 'closed' | 'paused' | 'silent' | 'slow' | 'lost'): Promise<void> {
  way.set(state);
  await sleep(SHORT_MS);
  // Answers that were dropped do not arrive any more: the connections that wait for them must be cut.
  if (state === 'silent') way.cut();
  way.set('open');
}

async function receiver(hooks: Hooks, state: Parameters<Hooks['set']>[0]): Promise<void> {
  await hooks.set(state);
  await sleep(SHORT_MS);
  await hooks.set('well');
}

/** Removes the trigger of a full disk, trying again until the database is back and has room. */
export async function mendDisk(ownerUrl: string): Promise<void> {
  for (;;) {
    try {
      return await withOwner(ownerUrl, (owner) => owner.query(raw(EMPTY_DISK)).then(() => {}));
    } catch {
      await sleep(200);
    }
  }
}
