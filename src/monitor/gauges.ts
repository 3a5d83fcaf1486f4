import { statfs } from 'node:fs/promises';
import { Gauge, Registry } from 'prom-client';
import type { Service } from '../context.ts';
import { isLogWaiting } from '../db/embedded.ts';
import { isAway } from '../db/errors.ts';
import type { Sql } from '../db/sql.ts';
import { readLastBackup } from '../db/status.ts';
import {
  ARCHIVER,
  BATCHES_BEHIND,
  CLOSED_UNTIL,
  DATABASE_AGE,
  DATABASE_SIZE,
  ENDPOINTS,
  FLOATS_LOW,
  GUESSES_TODAY,
  JOBS_BEHIND,
  PARTITIONS_AHEAD,
  SWEEP_BEHIND,
  WEBHOOKS_BEHIND,
} from './queries.ts';

/** Gauges of the database's state. Every process reports the same values: aggregate them by maximum. */

type Watching = { readonly service: Service; readonly dataDir: string | undefined };

/** Reads a gauge: one value, or one for each label; null if there is none. */
type Read = (watching: Watching) => Promise<Readonly<Record<string, number | null>>>;

type Definition = { readonly help: string; readonly label?: string; readonly read: Read };

const one = async <Row>({ service }: Watching, statement: Sql): Promise<Row> =>
  (await service.db.query<Row>(statement))[0] as Row;

type Behind = { processing: number; due: number; oldest_seconds: number };

/** The gauges by name. The key of a value without a label is ''. */
const GAUGES: Readonly<Record<string, Definition>> = {
  scrip_ready: {
    help: '1 while calls can be served; 0 for the cause why they cannot, as `/readyz` says.',
    label: 'cause',
    read: ({ service }) => service.readiness.gauge(service),
  },
  scrip_batches_processing: {
    help: 'Batches that are being produced.',
    read: async (watching) => ({ '': (await one<Behind>(watching, BATCHES_BEHIND)).processing }),
  },
  scrip_batches_stalled_seconds: {
    help: 'How long ago the batch progressed that has waited longest.',
    read: async (watching) => ({ '': (await one<Behind>(watching, BATCHES_BEHIND)).oldest_seconds }),
  },
  scrip_jobs_due: {
    help: 'Jobs of the background work that are due and not started.',
    read: async (watching) => ({ '': (await one<Behind>(watching, JOBS_BEHIND)).due }),
  },
  scrip_jobs_late_seconds: {
    help: 'How long the oldest of them has been due.',
    read: async (watching) => ({ '': (await one<Behind>(watching, JOBS_BEHIND)).oldest_seconds }),
  },
  scrip_sweep_late_seconds: {
    help: 'How long ago the batch expired that has waited longest for its sweep.',
    read: async (watching) => ({ '': (await one<{ seconds: number }>(watching, SWEEP_BEHIND)).seconds }),
  },
  scrip_webhooks_due: {
    help: 'Webhook deliveries that are due and not sent yet.',
    read: async (watching) => ({ '': (await one<Behind>(watching, WEBHOOKS_BEHIND)).due }),
  },
  scrip_webhooks_late_seconds: {
    help: 'How long the oldest of them has been due.',
    read: async (watching) => ({ '': (await one<Behind>(watching, WEBHOOKS_BEHIND)).oldest_seconds }),
  },
  scrip_webhook_endpoints: {
    help: 'Webhook endpoints, by state.',
    label: 'state',
    read: async (watching) => ({ ...(await one<Record<string, number>>(watching, ENDPOINTS)) }),
  },
  scrip_floats_low: {
    help: 'Floats below their threshold, by currency.',
    label: 'currency',
    read: async ({ service }) => {
      const rows = await service.db.query<{ currency: string; low: number }>(FLOATS_LOW);
      return Object.fromEntries(rows.map(({ currency, low }) => [currency, low]));
    },
  },
  scrip_guesses_today: {
    help: 'Unknown codes and wrong PINs since midnight UTC.',
    read: async (watching) => ({ '': (await one<{ guesses: number }>(watching, GUESSES_TODAY)).guesses }),
  },
  scrip_keys_blocked: {
    help: 'API keys that are blocked today because they kept guessing.',
    read: async (watching) => ({ '': (await one<{ blocked: number }>(watching, GUESSES_TODAY)).blocked }),
  },
  scrip_database_bytes: {
    help: 'The size of the database.',
    read: async (watching) => ({ '': (await one<{ bytes: number }>(watching, DATABASE_SIZE)).bytes }),
  },
  scrip_disk_free_bytes: {
    help: 'What is free on the disk of the embedded database.',
    read: async ({ dataDir }) => {
      const disk = dataDir === undefined ? undefined : await statfs(dataDir);
      return { '': disk ? disk.bavail * disk.bsize : null };
    },
  },
  scrip_archive_failing: {
    help: '1 while the log of the embedded database cannot be archived.',
    read: async (watching) => {
      const { archives, failing } = await one<{ archives: boolean; failing: boolean }>(watching, ARCHIVER);
      const isWaiting = watching.dataDir !== undefined && (await isLogWaiting(watching.dataDir));
      return { '': archives ? Number(failing || isWaiting) : null };
    },
  },
  scrip_partitions_ahead_months: {
    help: 'For how many months to come all partitions have been created.',
    read: async (watching) => ({ '': (await one<{ months: number }>(watching, PARTITIONS_AHEAD)).months }),
  },
  scrip_last_close_seconds: {
    help: 'How long ago the last closed day of the books ended, or their first day began.',
    read: async (watching) => ({
      '': (await one<{ seconds: number | null }>(watching, CLOSED_UNTIL)).seconds,
    }),
  },
  scrip_last_backup_seconds: {
    help: 'How long ago the last backup of the embedded database ended, or the database was made.',
    read: async (watching) => {
      if (watching.dataDir === undefined) return { '': null };
      const backup = await readLastBackup(watching.dataDir);
      if (backup) return { '': (Date.now() - Date.parse(backup.endedAt)) / 1_000 };
      // A missing backup counts as old, so that the alert fires.
      return { '': (await one<{ seconds: number }>(watching, DATABASE_AGE)).seconds };
    },
  },
};

/**
 * Returns a function that reads all gauges of a service. While the database is away, `scrip_database_up` is 0
 * and the others are absent.
 * @param dataDir of the embedded database; undefined if the database is external
 */
export function createGauges(service: Service, dataDir: string | undefined): () => Promise<string> {
  const registry = new Registry();
  const registers = [registry];
  const up = new Gauge({
    name: 'scrip_database_up',
    help: '1 while the database answers.',
    registers,
  });
  const gauges = Object.entries(GAUGES).map(([name, { help, label, read }]) => {
    const gauge = new Gauge({ name, help, labelNames: label === undefined ? [] : [label], registers });
    return async () => {
      gauge.reset();
      // A reset would set a value without a label to 0, but a gauge that cannot be read must be absent.
      if (label === undefined) gauge.remove();
      for (const [at, value] of Object.entries(await read({ service, dataDir }))) {
        if (value !== null) gauge.set(label === undefined ? {} : { [label]: at }, value);
      }
    };
  });
  return async () => {
    const read = await Promise.allSettled(gauges.map((each) => each()));
    const failures = read.filter((each) => each.status === 'rejected').map(({ reason }) => reason as Error);
    // An error other than an outage is a fault in a statement, which would otherwise go unnoticed.
    for (const error of failures)
      if (!isAway(error)) service.log.error({ err: error }, 'a metric cannot be read');
    up.set(failures.some(isAway) ? 0 : 1);
    return registry.metrics();
  };
}
