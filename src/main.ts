import { Command, CommanderError } from 'commander';
import { takeActor } from './cli/actor.ts';
import { CommandError, withoutTyped } from './cli/output.ts';
import { SETTINGS } from './config.ts';
import { StartError } from './db/start-error.ts';
import { Refusal } from './refusal.ts';

const WRONG_USAGE = 2;

const settings = Object.values(SETTINGS)
  .map(
    ({ name, fallback, description }) =>
      `  ${name.padEnd(20)}${description}${fallback === undefined ? '' : ` Default: ${fallback}`}`,
  )
  .join('\n');

const program = new Command('scrip')
  .description('Scrip: prepaid vouchers that carry money')
  .addHelpText('after', `\nSettings (environment):\n${settings}`)
  .showHelpAfterError('(try --help)')
  .configureOutput({ outputError: (text, write) => write(`scrip: ${withoutTyped(text.replace(/^error: /, ''))}`) })
  .exitOverride();
takeActor(program);

/** Loaded when they are asked for: nobody waits for the web server in order to top up a float. */
const COMMANDS: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  serve: async () => (await import('./cli/serve.ts')).registerServe,
  work: async () => (await import('./cli/work.ts')).registerWork,
  migrate: async () => (await import('./cli/migrate.ts')).registerMigrate,
  db: async () => (await import('./cli/db.ts')).registerDb,
  merchant: async () => (await import('./cli/merchant.ts')).registerMerchant,
  key: async () => (await import('./cli/key.ts')).registerKey,
  keys: async () => (await import('./cli/keys.ts')).registerKeys,
  float: async () => (await import('./cli/float.ts')).registerFloat,
  product: async () => (await import('./cli/product.ts')).registerProduct,
  batch: async () => (await import('./cli/batch.ts')).registerBatch,
  webhook: async () => (await import('./cli/webhook.ts')).registerWebhook,
  voucher: async () => (await import('./cli/voucher.ts')).registerVoucher,
  audit: async () => (await import('./cli/audit.ts')).registerAudit,
  reconcile: async () => (await import('./cli/reconcile.ts')).registerReconcile,
};

// A reader that has seen enough (`scrip batch list | head`) is no failure, nor is a terminal that was closed: a service
// that lives in it still has to stop in order.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
  });
}

// By itself Node opens its debugger at this signal, a port at which every account of the machine can run code beside the keys; and it is
// what rotating a log is often asked by.
process.on('SIGUSR1', () => {});

const name = process.argv[2] ?? '';
const asked = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
try {
  // The help tells of all of them, and so does the answer to a command that there is not.
  for (const load of asked ? [asked] : Object.values(COMMANDS)) (await load())(program);
  await program.parseAsync();
} catch (error) {
  process.exitCode = await tell(error);
}

/** Says what went wrong in one line, where it is something that the operator can do something about. */
async function tell(error: unknown): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
  const known = error instanceof StartError || error instanceof CommandError || error instanceof Refusal;
  process.stderr.write(`scrip: ${known ? error.message : await describe(error)}\n`);
  return 1;
}

/** A database that has gone is no bug, whatever was under way; for everything else the place where it happened is told. */
async function describe(error: unknown): Promise<string> {
  const { isUnavailable } = await import('./db/errors.ts');
  if (isUnavailable(error)) return `the database cannot be reached: ${(error as Error).message}`;
  return error instanceof Error ? String(error.stack) : String(error);
}
