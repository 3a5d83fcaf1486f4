import type { Command } from 'commander';
import type { Config } from '../config.ts';
import type { Operator } from '../context.ts';
import { keyFile } from '../db/key-ring.ts';
import { newRingKey } from '../secrets.ts';
import { RingRefused, type Watch } from '../vouchers/reseal.ts';
import { beginRotation, estimateAll, dropKey, finishRotation, listKeyRing } from '../vouchers/rotate.ts';
import { actor } from './actor.ts';
import { untilStopped, withService } from './open.ts';
import { fail, printJson, printTable } from './output.ts';
import { showProgress } from './progress.ts';
import type { Stop } from './stop.ts';

type Json = { json?: boolean };

export function registerKeys(program: Command): void {
  const keys = program
    .command('keys')
    .description('the key ring, under which codes, PINs and webhook secrets are sealed');
  keys.command('status').description('each key, and what depends on it').option('--json', 'print JSON').action(status);
  keys
    .command('rotate')
    .description(
      'put a new key to use and seal everything anew under it, while the service goes on; goes on where it was stopped',
    )
    .option('--json', 'print JSON')
    .action(rotate);
  keys
    .command('drop <keyId>')
    .description('let the key ring go without a key, once it is proven that nothing depends on it')
    .option('--json', 'print JSON')
    .action(drop);
  keys
    .command('make')
    .description('print a new key, to be put in front in SCRIP_KEYS; it is used by nothing yet')
    .option('--json', 'print JSON')
    .action(make);
}

async function status(options: Json): Promise<void> {
  await withService(async (service) => {
    const ring = await listKeyRing(service);
    if (options.json) return printJson(ring);
    printTable(
      ['key', 'state', 'in the key ring', 'since', 'vouchers', 'webhook secrets'],
      ring.map((each) => [
        each.keyId,
        each.state,
        each.inKeyRing ? 'yes' : 'no',
        each.since?.toISOString() ?? '',
        String(each.vouchers),
        String(each.webhookSecrets),
      ]),
    );
  });
}

/** The key file, where the key ring is not given by a setting, which nobody can write from here. */
const writableFile = (config: Config) => (config.keys === undefined ? keyFile(config) : undefined);

async function rotate(options: Json): Promise<void> {
  await withRing(async (operator, config, stop) => {
    const { keyId, resumed } = await beginRotation(operator, writableFile(config));
    const total = await estimateAll(operator.service.db);
    const resealed = watched(total, stop, options, 'sealed anew');
    const proven = watched(total, stop, options, 'proven');
    const prove: Watch = (vouchers) => {
      // Two bars that are drawn at one time would be drawn over one another.
      resealed.end();
      return proven.watch(vouchers);
    };
    const retired = await finishRotation(operator, resealed.watch, prove).finally(() => {
      resealed.end();
      proven.end();
    });
    if (!retired)
      fail(`interrupted: \`scrip keys rotate\` goes on; until then ${keyId} and the keys before it are needed`);
    if (options.json) return printJson({ keyId, resumed, retired });
    process.stdout.write(`everything is sealed under ${keyId}\n`);
    for (const old of retired)
      process.stdout.write(`${old} is retired: \`scrip keys drop ${old}\` lets the key ring go without it\n`);
  });
}

async function drop(keyId: string, options: Json): Promise<void> {
  await withRing(async (operator, config, stop) => {
    const file = writableFile(config);
    const proven = watched(await estimateAll(operator.service.db), stop, options, 'proven');
    if (!(await dropKey(operator, keyId, file, proven.watch).finally(proven.end)))
      fail('interrupted: nothing was changed');
    if (options.json) return printJson({ keyId, removedFrom: file ?? null });
    process.stdout.write(
      file === undefined
        ? `nothing depends on ${keyId}: take it out of SCRIP_KEYS. Backups from before need it still\n`
        : `nothing depends on ${keyId}, and it is out of the key file. Backups from before need it still\n`,
    );
  });
}

function make(options: Json): void {
  const key = newRingKey();
  if (options.json) printJson({ key });
  else process.stdout.write(`${key}\n`);
}

async function withRing(run: (operator: Operator, config: Config, stop: Stop) => Promise<void>): Promise<void> {
  await untilStopped((service, config, stop) =>
    run({ service, actor: actor() }, config, stop).catch((error: unknown) => {
      if (error instanceof RingRefused) fail(error.message);
      throw error;
    }),
  );
}

/** Follows what looks at every voucher, with a bar that shows how far it is, until it ends or is asked to stop. */
function watched(total: number, stop: Stop, options: Json, what: string): { watch: Watch; end: () => void } {
  let progress: ReturnType<typeof showProgress> | undefined;
  let done = 0;
  const watch: Watch = (vouchers) => {
    progress ??= showProgress(total, `vouchers ${what}`, options.json);
    done += vouchers;
    progress.update(Math.min(done, total));
    return stop.isAsked();
  };
  const end = () => {
    progress?.stop();
    progress = undefined;
  };
  return { watch, end };
}
