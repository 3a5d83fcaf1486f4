import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileIn, HISTORY, segmentAt, segmentNumber } from './archive.ts';
import { EmbeddedError } from './error.ts';
import { describeFolder, type Folder, readSettings } from './folder.ts';
import type { LogReader } from './log-reader.ts';
import type { Manifest } from './manifest.ts';
import { openStorage } from './open-storage.ts';

/**
 * The timelines of the log. Each restore begins a new one, which the archive holds from the moment when the
 * restored database serves. What the old one recorded after that stays in the archive, but a restore follows
 * one line only.
 */

/** A part of the way that a restore takes through the timelines. */
export type Leg = {
  readonly timeline: number;
  /** Where the next timeline begins; undefined for the last one. */
  readonly end: string | undefined;
  /** The first commit that was left out by the restore which began the next timeline, if any was. */
  readonly leftOutFrom: Date | undefined;
};

const LEG = /^(\d+)\t([0-9A-F]+\/[0-9A-F]+)\t(?:(?:before|after) (\S+) (\S+)\+00)?/gm;

export const timelineOf = (name: string) => Number.parseInt(name.slice(0, 8), 16);
const historyOf = (timeline: number) => `${timeline.toString(16).toUpperCase().padStart(8, '0')}.history`;

function readLegs(history: string): Leg[] {
  return [...history.matchAll(LEG)].map(([, timeline, end, day, time]) => ({
    timeline: Number(timeline),
    end,
    leftOutFrom: time === undefined ? undefined : new Date(`${day}T${time}Z`),
  }));
}

/** The timelines of which an archive with these names holds something. */
function timelinesIn(names: readonly string[]): number[] {
  return names
    .map(fileIn)
    .filter((file) => file !== undefined)
    .map(timelineOf);
}

/**
 * Finds the way through an archived log.
 * @param timeline the last one; undefined: the newest
 * @param known a timeline that exists: that of a backup
 * @throws EmbeddedError if there is no such timeline
 */
export async function findWay(log: LogReader, timeline: number | undefined, known: number): Promise<Leg[]> {
  const timelines = new Set([known, ...timelinesIn(log.names)]);
  const last = timeline ?? Math.max(...timelines);
  if (!timelines.has(last)) {
    const found = [...timelines].sort((one, other) => one - other).join(', ');
    throw new EmbeddedError(
      `there is no timeline ${last} in ${log.place}, which holds ${found}: choose one of them`,
    );
  }
  return [
    // Empty for a timeline that began with the installation, or with the archive.
    ...readLegs((await log.find(historyOf(last)))?.toString() ?? ''),
    { timeline: last, end: undefined, leftOutFrom: undefined },
  ];
}

/** Whether a restore that takes a way can start from a backup. */
export const startsFrom = (way: readonly Leg[], { timeline, stopLsn }: Manifest): boolean =>
  way.some((leg) => leg.timeline === timeline && (leg.end === undefined || isUpTo(stopLsn, leg.end)));

function isUpTo(one: string, other: string): boolean {
  const [at, end] = [one, other].map((lsn) => {
    const [high = '', low = ''] = lsn.split('/');
    return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`);
  });
  return (at as bigint) <= (end as bigint);
}

/** Whether a way goes through a segment. */
export function goesThrough(way: readonly Leg[], segment: string): boolean {
  const at = way.findIndex(({ timeline }) => timeline === timelineOf(segment));
  const leg = way[at];
  if (!leg) return false;
  const number = segmentNumber(segment);
  const begin = way[at - 1]?.end;
  return (
    (begin === undefined || number >= segmentAt(begin)) &&
    (leg.end === undefined || number <= segmentAt(leg.end))
  );
}

/**
 * Reads where a restored database left a timeline because of an earlier restore.
 * @param from the timeline of the backup
 * @param to the wanted time: what an earlier restore left out from a later time on is not missed
 */
export async function readForks({ cluster }: Folder, from: number, to = new Date()): Promise<Leg[]> {
  const wal = join(cluster, 'pg_wal');
  const newest = (await readdir(wal))
    .filter((name) => HISTORY.test(name))
    .sort()
    .at(-1);
  if (newest === undefined) return [];
  const legs = readLegs(await readFile(join(wal, newest), 'utf8'));
  // The last entry is of this restore itself, which may have ended before it came to the others.
  const end = legs.pop()?.end;
  return legs.filter(
    (leg) =>
      leg.timeline >= from &&
      !(leg.leftOutFrom && leg.leftOutFrom > to) &&
      end !== undefined &&
      leg.end !== undefined &&
      !isUpTo(end, leg.end),
  );
}

/**
 * Finds a timeline in the archive of a data folder that its database did not begin: a restored copy of it
 * archives there too.
 * @param timeline the one on which the database writes
 */
export async function findForeignTimeline(root: string, timeline: number): Promise<number | undefined> {
  const { archiveDir } = (await readSettings(describeFolder(resolve(root)))) ?? {};
  if (archiveDir === undefined) return undefined;
  const archive = await openStorage(archiveDir);
  return timelinesIn(await archive.list('')).find((each) => each > timeline);
}
