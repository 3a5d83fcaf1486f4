import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { checkpointOf, cosign, isSigned, KINDS, readCheckpoint, verifierKey } from '../books/checkpoint.ts';
import { type Published, readPublished, writePublic } from '../books/publish.ts';
import { lockFile } from '../db/embedded.ts';
import { type Signer, signerOf } from '../keyring/ring.ts';
import { readOrdinary } from '../private-file.ts';
import { MINUTE_MS } from '../time.ts';
import { writeWhole } from './file.ts';
import { fail, interrupted, numberOf, printJson, say } from './output.ts';
import { listenForStop } from './signals.ts';

export function registerWitness(program: Command): void {
  program
    .command('witness <dir> <state>')
    .description(
      'confirm the published checkpoint of an installation, unless it lacks or changes what was seen before',
    )
    .option('--json', 'print JSON')
    .action(witness);
}

/**
 * Confirms (cosigns) a checkpoint. `state` is a folder of the witness: its key, and the last checkpoint that
 * it has confirmed. The first checkpoint is trusted, as are its keys. A later one, and its keys, must be
 * signed by a key that was published with the one before it.
 */
async function witness(folder: string, state: string, { json }: { json?: boolean }): Promise<void> {
  if (!(await readPublished(folder))) fail(`${folder} has no checkpoint`);
  const stop = listenForStop();
  await mkdir(state, { recursive: true });
  // A witness that has read fewer days would make another one forget the last ones.
  const until = performance.now() + OTHERS_MS;
  const unlock = await lockFile(join(state, 'lock'), () => stop.isAsked() || performance.now() > until);
  if (!unlock) return stop.isAsked() ? interrupted() : fail(`${state} is in use by another witness`);
  try {
    const { key, ...confirmed } = await confirm(folder, state);
    if (json) printJson({ ...confirmed, key });
    else say(`confirmed ${numberOf(confirmed.size, 'day')} of ${confirmed.origin} by ${key}`);
  } finally {
    unlock();
  }
}

/** How long a witness waits for another one. */
const OTHERS_MS = MINUTE_MS;

async function confirm(
  folder: string,
  state: string,
): Promise<{ origin: string; size: number; key: string }> {
  const published = (await readPublished(folder)) ?? fail(`${folder} has no checkpoint`);
  const seen = await readPublished(state);
  const problem = findProblem(published, seen);
  const checkpoint = readCheckpoint(published.checkpoint);
  if (problem || !checkpoint) fail(`not confirmed: ${problem ?? NO_CHECKPOINT}`);
  const { origin, size, text } = checkpoint;
  const signer = await openSigner(join(state, 'secret'));
  const name = `scrip-witness/${signer.publicKey.toString('hex').slice(0, 16)}`;
  const line = cosign(text, name, signer, new Date());
  await writePublic(join(state, 'closings'), published.closings.map((each) => `${each}\n`).join(''));
  await writePublic(join(state, 'keys'), published.signedKeys);
  await writePublic(join(state, 'checkpoint'), `${published.checkpoint}${line}`);
  return { origin, size, key: verifierKey(name, KINDS.witness, signer.publicKey) };
}

const NO_CHECKPOINT = 'it is no checkpoint: it was changed or cut off';

/** Returns why a checkpoint cannot be confirmed. */
export function findProblem(
  { closings, checkpoint, keys, signedKeys }: Published,
  seen: Published | undefined,
): string | undefined {
  const read = readCheckpoint(checkpoint);
  if (!read) return NO_CHECKPOINT;
  const { origin, size, root } = read;
  const known = seen?.keys ?? keys;
  if (!isSigned(checkpoint, origin, known)) return 'it is not signed by a key of this installation';
  if (seen && !(isSigned(signedKeys, origin, known) && keys.some((key) => known.includes(key))))
    return 'its keys are not signed by a key that was seen before';
  const expected = checkpointOf(closings.slice(0, size));
  if (closings.length < size || !expected.root.equals(root) || expected.origin !== origin)
    return 'the published closings are not those of the checkpoint';
  if (!seen) return undefined;
  const before = readCheckpoint(seen.checkpoint);
  if (!before) return 'what this witness has seen before is damaged';
  if (before.origin !== origin) return `it is of ${origin}, and ${before.origin} was seen before`;
  if (before.size > size)
    return `it has ${size} days, and ${before.size} were seen before: days were taken back`;
  if (!checkpointOf(closings.slice(0, before.size)).root.equals(before.root))
    return `its first ${before.size} days are not those that were seen before: there are two histories`;
  return undefined;
}

const SEED = /^[0-9a-f]{64}$/;

/** Opens the key of the witness, which its first run creates. */
async function openSigner(path: string): Promise<Signer> {
  const seed = await readOrdinary(path).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    const made = randomBytes(32).toString('hex');
    await writeWhole(path, [made], false);
    return made;
  });
  if (!SEED.test(seed))
    fail(`${path} is no key of a witness: put it back from a copy, or begin with a new folder for the state`);
  return signerOf(Buffer.from(seed, 'hex'));
}
