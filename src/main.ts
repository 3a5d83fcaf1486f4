import { Command, CommanderError } from 'commander';
import { registerBatch } from './cli/batch.ts';
import { registerDb } from './cli/db.ts';
import { registerFloat } from './cli/float.ts';
import { registerKey } from './cli/key.ts';
import { registerMerchant } from './cli/merchant.ts';
import { registerMigrate } from './cli/migrate.ts';
import { CommandError } from './cli/output.ts';
import { registerProduct } from './cli/product.ts';
import { registerReconcile } from './cli/reconcile.ts';
import { registerServe } from './cli/serve.ts';
import { registerVoucher } from './cli/voucher.ts';
import { registerWork } from './cli/work.ts';
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
  .configureOutput({ outputError: (text, write) => write(`scrip: ${text.replace(/^error: /, '')}`) })
  .exitOverride();

const COMMANDS = [
  registerServe,
  registerWork,
  registerMigrate,
  registerDb,
  registerMerchant,
  registerKey,
  registerFloat,
  registerProduct,
  registerBatch,
  registerVoucher,
  registerReconcile,
];
for (const register of COMMANDS) register(program);

// Who reads only the first lines (`scrip … | head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = tell(error);
}

/** Says what went wrong in one line, where it is something that the operator can do something about. */
function tell(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
  const known = error instanceof StartError || error instanceof CommandError || error instanceof Refusal;
  process.stderr.write(`scrip: ${known ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
  return 1;
}
