import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Command, CommanderError } from 'commander';
import { CommandError, readable, STATUS, toJson, withoutValues } from './cli/output.ts';
import { prepare, readVersion, settingsHelp, takeActor } from './cli/usage.ts';
import { StartError } from './db/errors.ts';
import { Problem } from './problem.ts';
import { Refusal } from './refusal.ts';

// Half of a short command's time was the compilation of the source. The cache is in node_modules, which is as
// trusted as the source. If the folder is read-only, there is no cache.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/scrip', import.meta.url)));

/** Loaded on demand, so that a top-up does not wait for the web server to load. */
const COMMANDS: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  serve: async () => (await import('./cli/serve.ts')).registerServe,
  work: async () => (await import('./cli/work.ts')).registerWork,
  migrate: async () => (await import('./cli/db.ts')).registerMigrate,
  db: async () => (await import('./cli/db.ts')).registerDb,
  merchant: async () => (await import('./cli/merchant.ts')).registerMerchant,
  'api-key': async () => (await import('./cli/api-key.ts')).registerApiKey,
  keyring: async () => (await import('./cli/keyring.ts')).registerKeyring,
  float: async () => (await import('./cli/float.ts')).registerFloat,
  product: async () => (await import('./cli/product.ts')).registerProduct,
  batch: async () => (await import('./cli/batch.ts')).registerBatch,
  voucher: async () => (await import('./cli/voucher.ts')).registerVoucher,
  transaction: async () => (await import('./cli/transaction.ts')).registerTransaction,
  redemption: async () => (await import('./cli/transaction.ts')).registerRedemption,
  decline: async () => (await import('./cli/transaction.ts')).registerDecline,
  books: async () => (await import('./cli/books.ts')).registerBooks,
  bank: async () => (await import('./cli/bank.ts')).registerBank,
  settlement: async () => (await import('./cli/settlement.ts')).registerSettlement,
  webhook: async () => (await import('./cli/webhook.ts')).registerWebhook,
  approval: async () => (await import('./cli/approval.ts')).registerApproval,
  settings: async () => (await import('./cli/approval.ts')).registerSettings,
  user: async () => (await import('./cli/user.ts')).registerUser,
  doctor: async () => (await import('./cli/health.ts')).registerDoctor,
  backup: async () => (await import('./cli/backup.ts')).registerBackup,
  restore: async () => (await import('./cli/backup.ts')).registerRestore,
  job: async () => (await import('./cli/job.ts')).registerJob,
  token: async () => (await import('./cli/user.ts')).registerToken,
  audit: async () => (await import('./cli/audit.ts')).registerAudit,
  import: async () => (await import('./cli/import.ts')).registerImport,
  reconcile: async () => (await import('./cli/health.ts')).registerReconcile,
  status: async () => (await import('./cli/health.ts')).registerStatus,
  completion: async () => (await import('./cli/usage.ts')).registerCompletion,
};

// If the reader closes the pipe (`scrip batch list | head`) or the terminal, that is not an error. A service
// in that terminal still has to shut down in order.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
  });
}

// Without a handler, this signal opens Node's debugger: a port through which every account of the machine
// could run code in this process, with access to its keys. Log rotation often sends the signal.
process.on('SIGUSR1', () => {});

const program = new Command('scrip')
  .description('Scrip: prepaid vouchers that carry money')
  .version(readVersion(), '--version', 'print the version')
  .addHelpText('after', settingsHelp);
takeActor(program);

const name = process.argv[2] ?? '';
const isAlone = Object.hasOwn(COMMANDS, name) && name !== 'completion';
const asked = isAlone ? COMMANDS[name] : undefined;
try {
  // The help, the completion and the error of an unknown command list all commands.
  for (const load of asked ? [asked] : Object.values(COMMANDS)) (await load())(program);
  prepare(program);
  await program.parseAsync();
} catch (error) {
  process.exitCode = await report(error);
  // Abandoned work must not keep the process alive.
  if (process.exitCode === STATUS.unknown || process.exitCode === STATUS.interrupted) process.exit();
}

/** Prints why a command failed: a line, or a document with `--json`. @returns the exit status */
async function report(error: unknown): Promise<number> {
  // The help and the version also end a command.
  if (error instanceof CommanderError && error.code.startsWith('commander.help'))
    return error.exitCode && STATUS.usage;
  if (error instanceof CommanderError && error.exitCode === 0) return 0;
  const { code, message, status } = await describe(error);
  const text = process.argv.includes('--json') ? toJson({ error: { code, message } }) : `scrip: ${message}`;
  process.stderr.write(`${text}\n`);
  return status;
}

/**
 * Describes a problem in terms of the command line. Fields of an operation are options of its command, whose
 * names may be shorter: `expiresAt` is refused as `--expires`, and an item of `roles` as `--role`.
 */
function describeProblem({ code, message, errors }: Problem): {
  code: string;
  message: string;
  status: number;
} {
  const [first] = errors ?? [];
  if (code !== 'invalid' || !first) return { code, message: readable(message), status: STATUS.failed };
  const name = `--${first.field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const given = process.argv.map((each) => each.replace(/=.*/s, ''));
  const [option = name] = given
    .filter((each) => each.length > '--'.length && name.startsWith(each))
    .sort((one, other) => other.length - one.length);
  return { code: 'usage', message: readable(`${option} ${first.message}`), status: STATUS.usage };
}

async function describe(error: unknown): Promise<{ code: string; message: string; status: number }> {
  if (error instanceof CommandError) return { ...error, message: readable(error.message) };
  if (error instanceof CommanderError) {
    const message = withoutValues(error.message.replace(/^error: /, '')).replaceAll('\n', ' ');
    return { code: 'usage', message, status: STATUS.usage };
  }
  const status = STATUS.failed;
  if (error instanceof StartError)
    return { code: 'not-started', message: error.message, status: STATUS.notStarted };
  if (error instanceof Problem) return describeProblem(error);
  if (error instanceof Refusal) return { code: error.code, message: readable(error.message), status };
  const { isUnavailable, nodeOf, sqlState } = await import('./db/errors.ts');
  if (isUnavailable(error)) {
    const node = nodeOf(error);
    // With a state, the database did answer: a statement took too long, or it has no connection left.
    const what =
      node !== undefined
        ? `node ${node} cannot be reached`
        : sqlState(error) === undefined
          ? 'cannot be reached'
          : 'cannot do this now';
    return {
      code: 'unavailable',
      message: `the database ${what}: ${readable((error as Error).message)}`,
      status: STATUS.unavailable,
    };
  }
  // A bug: the stack trace is useful.
  const message = error instanceof Error ? (error.stack ?? String(error)) : String(error);
  return { code: 'internal', message, status: STATUS.internal };
}
