import type { Command } from 'commander';
import { type Config, readConfig } from '../config.ts';
import type { Operator } from '../context.ts';
import {
  entriesBeside,
  type KeyFile,
  keyFile,
  newKeyRing,
  newRingKey,
  ownKeyFile,
  refuseKeyRing,
  rewriteKeyFile,
  routingEntry,
} from '../keyring/file.ts';
import { openRing } from '../keyring/sealed.ts';
import { readOrdinary } from '../private-file.ts';
import { type OnProgress, RingRefused } from '../rotation/reseal.ts';
import { beginRotation, dropKey, estimateAll, finishRotation } from '../rotation/rotate.ts';
import { untilStopped } from './open.ts';
import { explainOutcome, fail, interrupted, printJson, say, wrongUsage } from './output.ts';
import { requireApproval } from './perform.ts';
import { showProgress } from './progress.ts';
import { listenForStop, type Stop } from './signals.ts';
import { actor } from './usage.ts';

type Json = { json?: boolean };

/** Adds the commands that change the key ring, or a key file. */
export function addRotation(commands: Command): void {
  commands
    .command('rotate')
    .description(
      'start using a new key, and seal everything again under it while the service runs; continues an interrupted rotation',
    )
    .option('--json', 'print JSON')
    .action(rotate);
  commands
    .command('drop <keyId>')
    .description('remove a key, after a proof that nothing is sealed under it')
    .option('--json', 'print JSON')
    .action(drop);
  commands
    .command('make')
    .description('print a new key, to be put first in SCRIP_KEYS; nothing uses it yet')
    .option('--routing', 'print the entry of the routing key in use instead, for a key ring that has none')
    .option('--ring', 'print a whole key ring instead, for a new database')
    .option('--json', 'print JSON')
    .action(make);
  commands
    .command('seal')
    .description('seal the key file by the key management service of SCRIP_KMS')
    .option('--json', 'print JSON')
    .action(seal);
  commands
    .command('unseal')
    .description('write the key file unencrypted, to stop using SCRIP_KMS or to move to another one')
    .option('--json', 'print JSON')
    .action(unseal);
}

async function rotate(options: Json): Promise<void> {
  await withRing(async (operator, config, stop) => {
    const { keyId, resumed } = await beginRotation(operator, ownKeyFile(config));
    const total = await estimateAll(operator.service.db);
    const resealed = progressBar(total, stop, options, 'sealed again');
    const proven = progressBar(total, stop, options, 'proven');
    const prove: OnProgress = (vouchers) => {
      // Two bars at the same time would overwrite each other.
      resealed.end();
      return proven.onProgress(vouchers);
    };
    const retired = await finishRotation(operator, resealed.onProgress, prove).finally(() => {
      resealed.end();
      proven.end();
    });
    if (!retired) {
      interrupted(
        `interrupted: \`scrip keyring rotate\` continues; until then ${keyId} and the keys before it are needed`,
      );
    }
    if (options.json) return printJson({ keyId, resumed, retired });
    say(`everything is sealed under ${keyId}`);
    for (const old of retired) say(`${old} is retired: \`scrip keyring drop ${old}\` removes it`);
  });
}

async function drop(keyId: string, options: Json): Promise<void> {
  await withRing(async (operator, config, stop) => {
    await requireApproval(operator, 'keyring drop');
    const file = ownKeyFile(config);
    const proven = progressBar(await estimateAll(operator.service.db), stop, options, 'proven');
    if (!(await dropKey(operator, keyId, file, proven.onProgress).finally(proven.end))) interrupted();
    if (options.json) return printJson({ keyId, removedFrom: file?.path ?? null });
    const left = `The key ring then holds ${entriesBeside(operator.service.keys, keyId).join(', ')}`;
    const rest = 'Backups from before still need it';
    say(
      file === undefined
        ? `nothing depends on ${keyId}: take its entry, and no other, out of the key ring. ${left}. ${rest}`
        : `nothing depends on ${keyId}, and it is removed from the key file. ${left}. ${rest}`,
    );
  });
}

async function make(options: Json & { ring?: boolean; routing?: boolean }): Promise<void> {
  if (options.ring && options.routing) wrongUsage('--ring and --routing: choose one');
  if (options.routing) return withRing(async ({ service }) => printKey(routingEntry(service.keys), options));
  printKey(options.ring ? newKeyRing() : newRingKey(), options);
}

function printKey(key: string, { json }: Json): void {
  if (json) printJson({ key });
  else for (const entry of key.split('\n')) say(entry);
}

/** Returns the key file. @throws CommandError if the key ring is not a file that can be written */
function sealedFile(config: Config): KeyFile {
  if (config.kms === undefined) fail('SCRIP_KMS is not set: it names the key that seals the key file');
  if (config.keys !== undefined)
    fail(
      'SCRIP_KEYS contains the key ring: put it into a file, name that in SCRIP_KEYS_FILE, and unset SCRIP_KEYS',
    );
  return keyFile(config);
}

async function seal(options: Json): Promise<void> {
  const file = sealedFile(readConfig());
  const ring = await readRing({ ...file, kms: undefined });
  await rewriteKeyFile(file, ring);
  if (options.json) return printJson({ file: file.path, kms: file.kms?.name });
  say(`${file.path} is sealed by ${file.kms?.name}. Remove copies in the clear once a start has succeeded.`);
}

async function unseal(options: Json): Promise<void> {
  const file = sealedFile(readConfig());
  await rewriteKeyFile({ ...file, kms: undefined }, await readRing(file));
  if (options.json) return printJson({ file: file.path, kms: null });
  say(`${file.path} is in the clear: unset SCRIP_KMS, or seal it again.`);
}

/** Reads the key ring, before a change of its file, which a signal does not interrupt. */
async function readRing({ path, kms }: KeyFile): Promise<string> {
  listenForStop();
  const text = await readOrdinary(path).catch((error: NodeJS.ErrnoException) =>
    fail(`the key file ${path} cannot be read (${error.code})`),
  );
  const ring = await openRing(text, `the key file ${path}`, kms);
  const problem = refuseKeyRing(ring);
  if (problem) fail(`the key file ${path} ${problem}`);
  return ring;
}

async function withRing(
  run: (operator: Operator, config: Config, stop: Stop) => Promise<void>,
): Promise<void> {
  await untilStopped((service, config, stop) =>
    run({ service, actor: actor() }, config, stop).catch((error: unknown) => {
      if (error instanceof RingRefused) fail(error.message);
      return explainOutcome(error, 'run it again: it continues where it was');
    }),
  );
}

/** Shows the progress of work on all vouchers, until it ends or is asked to stop. */
function progressBar(
  total: number,
  stop: Stop,
  options: Json,
  what: string,
): { onProgress: OnProgress; end: () => void } {
  const progress = showProgress(`vouchers ${what}`, options.json);
  let done = 0;
  const onProgress: OnProgress = (vouchers) => {
    done += vouchers;
    progress.update(Math.min(done, total), total);
    return stop.isAsked();
  };
  return { onProgress, end: progress.stop };
}
