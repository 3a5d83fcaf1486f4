import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { readOrdinary, withDraft } from '../private-file.ts';
import { Problem } from '../problem.ts';
import {
  type Checkpoint,
  checkpointOf,
  isSigned,
  KINDS,
  readCheckpoint,
  signCheckpoint,
  signKeys,
  verifierKey,
} from './checkpoint.ts';
import { type Closing, listClosings, textOfClosing } from './seal.ts';
import type { Break } from './verify.ts';

/** Publishes a signed checkpoint of the closed days, so that nobody can deny or replace them later. */

/** The content of the folder: the texts of the closings, the checkpoint, and the public keys. */
export type Published = {
  readonly closings: readonly string[];
  readonly checkpoint: string;
  readonly keys: readonly string[];
  /** The text of the keys, with the signatures that confirm them. */
  readonly signedKeys: string;
};

/** Reads a folder. @returns undefined if nothing was published there */
export async function readPublished(folder: string): Promise<Published | undefined> {
  const read = (name: string) =>
    readOrdinary(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
  // A publication writes it last: what is read after it is at least as new.
  const checkpoint = await read('checkpoint');
  if (checkpoint === undefined) return undefined;
  const [closings, keys] = await Promise.all([read('closings'), read('keys')]);
  const [listed = ''] = (keys ?? '').split('\n\n', 1);
  return { closings: linesOf(closings ?? ''), checkpoint, keys: linesOf(listed), signedKeys: keys ?? '' };
}

const linesOf = (text: string) => text.split('\n').filter((line) => line !== '');

/** Returns the day of a closing that was read, even if the text is no day. */
function dayOf(closing: string): string {
  try {
    return String((JSON.parse(closing) as unknown[])[2]);
  } catch {
    return 'no day';
  }
}

/**
 * Publishes the closed days in a folder, which any web server serves: `closings`, `checkpoint` and `keys`.
 * The checkpoint is written last, so a reader never sees one without its closings.
 * @throws Problem `conflict` if no day is closed, or if the folder contains another history
 */
export function publishBooks(service: Pick<Service, 'db' | 'keys'>, folder: string): Promise<Checkpoint> {
  return service.db.transaction(async (tx) => {
    // The closings of one publication do not agree with the checkpoint of another.
    await tx.query(sql`select pg_advisory_xact_lock(7311990022)`);
    return publish(service, await readTexts({ db: tx }), folder);
  }, 'read committed');
}

async function publish(
  service: Pick<Service, 'keys'>,
  closings: readonly string[],
  folder: string,
): Promise<Checkpoint> {
  if (closings.length === 0)
    throw new Problem('conflict', 'no day is closed yet: there is nothing to publish');
  const published = await readPublished(folder);
  const [found] = published ? findDifferences(published, closings) : [];
  if (found)
    throw new Problem('conflict', `${folder} contains another history: ${found.day}: ${found.detail}`);
  const checkpoint = checkpointOf(closings);
  if (published && !isSigned(published.checkpoint, checkpoint.origin, keysOf(service, checkpoint.origin)))
    throw new Problem('conflict', `${folder} has a checkpoint of another key: ${UNKNOWN_KEY}. ${REMEDY}`);
  await mkdir(folder, { recursive: true });
  await writePublic(join(folder, 'closings'), closings.map((text) => `${text}\n`).join(''));
  const signers = service.keys.signers();
  await writePublic(join(folder, 'keys'), signKeys(checkpoint.origin, signers));
  await writePublic(join(folder, 'checkpoint'), signCheckpoint(checkpoint, signers));
  return checkpoint;
}

const UNKNOWN_KEY =
  'no key of the key ring has signed the checkpoint: it was changed, or its key was dropped';
const REMEDY =
  'Put that key back as the last entry of the key ring, publish, and remove it again. If it is lost, publish in a new folder, and give its keys to those who verify it';

/** Compares the closed days, and the keys, with those that were published in a folder. */
export async function compareWith(service: Pick<Service, 'db' | 'keys'>, folder: string): Promise<Break[]> {
  const published = await readPublished(folder);
  if (!published) throw new Problem('not-found', `${folder} has no checkpoint`);
  const found = findDifferences(published, await readTexts(service));
  return found.length > 0 ? found : findWrongKeys(service, published);
}

/** Returns the texts of all closings, from the first one on. */
export async function readTexts({ db }: { readonly db: Queries }): Promise<string[]> {
  return (await db.query<Closing>(listClosings(null, null))).map(textOfClosing);
}

const keysOf = ({ keys }: Pick<Service, 'keys'>, origin: string) =>
  keys.signers().map(({ publicKey }) => verifierKey(origin, KINDS.log, publicKey));

const difference = (day: string, detail: string): Break => ({ day, change: 'published', detail });

function findDifferences({ closings, checkpoint }: Published, own: readonly string[]): Break[] {
  const at = closings.findIndex((text, index) => text !== own[index]);
  const other = closings[at];
  if (other !== undefined)
    return [
      difference(
        dayOf(other),
        own[at] === undefined
          ? 'it was published, and is not closed here: the database was rolled back'
          : 'it was published with another closing: there are two histories',
      ),
    ];
  const read = readCheckpoint(checkpoint);
  const last = dayOf(closings.at(-1) ?? own.at(-1) ?? '');
  if (!read) return [difference(last, 'the checkpoint is none: it was changed or cut off')];
  const { origin, size, root } = read;
  const expected = checkpointOf(closings.slice(0, size));
  if (expected.size !== size || !expected.root.equals(root) || expected.origin !== origin)
    return [difference(last, 'the published closings are not those of the checkpoint')];
  return [];
}

/** Every published key is one of the key ring, and has signed: each may be the one that somebody knows. */
function findWrongKeys(
  service: Pick<Service, 'keys'>,
  { closings, checkpoint, keys, signedKeys }: Published,
): Break[] {
  const { origin } = checkpointOf(closings);
  const own = keysOf(service, origin);
  const last = dayOf(closings.at(-1) ?? '');
  if (!isSigned(checkpoint, origin, own)) return [difference(last, UNKNOWN_KEY)];
  const wrong = keys.find((key) => !own.includes(key) || !isSigned(checkpoint, origin, [key]));
  if (wrong !== undefined)
    return [difference(last, `${wrong} is no key of the key ring, or has not signed the checkpoint`)];
  return isSigned(signedKeys, origin, own) ? [] : [difference(last, 'the published keys are not signed')];
}

/** Writes a file that everybody may read, completely or not at all. */
export async function writePublic(path: string, text: string): Promise<void> {
  await withDraft(path, async (draft) => {
    await writeFile(draft, text, { mode: 0o644, flag: 'wx', flush: true });
    await rename(draft, path);
  });
}
