import { Command } from 'commander';
import type { AnyOperation } from '../operation.ts';
import { type Adjusting, registerOperations } from './commands.ts';
import { prepare, readVersion, settingsHelp, takeActor } from './usage.ts';

/** The program and its commands. A noun is loaded when its word is typed: no command waits for others. */

type Register = (program: Command) => void;

/**
 * Loads a noun whose commands follow from the declarations of its operations.
 * @param loadOwn adds the commands that do more: those that wait, or that read or write files
 * @param loadAdjusting what the command line knows beside the operations
 */
const derived =
  (
    noun: string,
    description: string,
    load: () => Promise<readonly AnyOperation[]>,
    loadOwn?: () => Promise<Register>,
    loadAdjusting?: () => Promise<Adjusting>,
  ) =>
  async (): Promise<Register> => {
    const [operations, addOwn, adjusting] = [await load(), await loadOwn?.(), await loadAdjusting?.()];
    return (program) => registerOperations(program, noun, description, operations, addOwn, adjusting);
  };

const COMMANDS: Readonly<Record<string, () => Promise<Register>>> = {
  serve: async () => (await import('./serve.ts')).registerServe,
  work: async () => (await import('./work.ts')).registerWork,
  migrate: async () => (await import('./db.ts')).registerMigrate,
  db: async () => (await import('./db.ts')).registerDb,
  merchant: derived('merchant', 'merchants, which sell and accept vouchers', async () => [
    ...(await import('../api-keys/create-merchant.ts')).FIRST_KEYS,
    ...(await import('../merchants/merchants.ts')).MERCHANTS,
  ]),
  'api-key': derived(
    'api-key',
    'API keys, with which merchants call',
    async () => (await import('../api-keys/keys.ts')).API_KEYS,
    async () => (await import('./api-key.ts')).addRevoke,
  ),
  'daily-limit': derived(
    'daily-limit',
    'daily limits, which bound what merchants and their keys issue and redeem',
    async () => (await import('../api-keys/daily-limits.ts')).DAILY_LIMITS,
  ),
  keyring: derived(
    'keyring',
    'the key ring, under which codes, PINs and webhook secrets are sealed',
    async () => (await import('../rotation/rotate.ts')).KEYRING,
    async () => (await import('./keyring.ts')).addRotation,
  ),
  float: derived('float', 'floats, the money that merchants have paid in advance', async () => [
    ...(await import('../merchants/floats.ts')).FLOATS,
    ...(await import('../books/floats.ts')).FLOAT_MONEY,
  ]),
  product: derived(
    'product',
    'products, the terms on which vouchers are generated',
    async () => (await import('../products/products.ts')).PRODUCTS,
  ),
  design: derived(
    'design',
    'designs, the look of printed cards',
    async () => (await import('../batches/design-preview.ts')).CARD_DESIGNS,
  ),
  batch: derived(
    'batch',
    'batches of vouchers',
    async () => (await import('../batches/batches.ts')).BATCHES,
    async () => (await import('./batch.ts')).addOrders,
  ),
  voucher: derived(
    'voucher',
    'single vouchers, by serial number',
    async () => [
      ...(await import('../vouchers/operate.ts')).VOUCHERS,
      ...(await import('../vouchers/find.ts')).FOUND_VOUCHERS,
      ...(await import('../books/vouchers.ts')).VOUCHER_MONEY,
      ...(await import('../operations/background.ts')).BACKGROUND,
    ],
    async () => (await import('./voucher-bulk.ts')).addOwn,
  ),
  transaction: derived(
    'transaction',
    'transactions of all merchants',
    async () => (await import('../transactions/transactions.ts')).TRANSACTIONS,
  ),
  redemption: derived('redemption', 'redemptions', async () => [
    ...(await import('../redemptions/correct.ts')).REDEMPTIONS,
    ...(await import('../books/refunds.ts')).REFUNDS,
  ]),
  decline: derived(
    'decline',
    'requests of merchants that were declined',
    async () => (await import('../vouchers/declines.ts')).DECLINES,
  ),
  request: derived(
    'request',
    'requests, by the X-Request-Id of their answers',
    async () => (await import('../operations/requests.ts')).REQUESTS,
  ),
  books: derived(
    'books',
    'the books: closed days that never change, and reports',
    async () => {
      const { DAY_ENDS } = await import('../settlement/fees.ts');
      return (await import('../books/books.ts')).booksWith(DAY_ENDS);
    },
    async () => (await import('./books.ts')).addBooks,
  ),
  bank: derived(
    'bank',
    'statements of your bank, matched with the books',
    async () => (await import('../bank/table.ts')).BANK,
  ),
  settlement: derived(
    'settlement',
    'settlements with the merchants that redeem',
    async () => (await import('../settlement/table.ts')).SETTLEMENT,
  ),
  webhook: derived('webhook', 'webhook endpoints, to which merchants have events sent', async () => [
    ...(await import('../webhooks/endpoints.ts')).WEBHOOKS,
    ...(await import('../webhooks/deliveries.ts')).DELIVERIES,
  ]),
  approval: derived(
    'approval',
    'operations that one person proposes and another approves',
    async () => (await import('../operations/table.ts')).OPERATIONS,
  ),
  inbox: derived(
    'inbox',
    'what waits for somebody, and what is new',
    async () => (await import('../operations/table.ts')).OPERATIONS,
  ),
  settings: derived('settings', 'settings that can be changed while the service runs', async () => [
    ...(await import('../settings/settings.ts')).SETTINGS,
    ...(await import('../settings/limited-network.ts')).LIMITED_NETWORK,
    ...(await import('../settings/letterhead.ts')).LETTERHEAD,
  ]),
  setup: derived(
    'setup',
    'the steps from an empty installation to the first redemption',
    async () => (await import('../operations/setup.ts')).SETUP,
  ),
  user: derived(
    'user',
    'people who sign in to the console and the portal',
    async () => [
      ...(await import('../people/invite.ts')).INVITATIONS,
      ...(await import('../people/users.ts')).USERS,
      ...(await import('../people/persons.ts')).PERSONS,
    ],
    undefined,
    async () => (await import('./user.ts')).USER,
  ),
  doctor: async () => (await import('./health.ts')).registerDoctor,
  probe: async () => (await import('./probe.ts')).registerProbe,
  bench: async () => (await import('./bench.ts')).registerBench,
  backup: derived(
    'backup',
    'backups of the database',
    async () => (await import('../backups/note.ts')).BACKUPS,
    async () => (await import('./backup.ts')).addBackups,
  ),
  restore: async () => (await import('./backup.ts')).registerRestore,
  job: derived('job', 'long work in the background', async () => [
    ...(await import('../jobs/jobs.ts')).JOBS,
    ...(await import('../operations/background.ts')).BACKGROUND,
  ]),
  token: derived(
    'token',
    'tokens, with which machines call /operator/v1 and /portal/v1',
    async () => (await import('../people/tokens.ts')).TOKENS,
  ),
  audit: derived(
    'audit',
    'the record of all changes by operators, a chain in which every edit is noticed',
    async () => (await import('../audit/entries.ts')).AUDIT,
    async () => (await import('./audit.ts')).addVerify,
  ),
  witness: async () => (await import('./witness.ts')).registerWitness,
  import: async () => (await import('./import.ts')).registerImport,
  reconcile: async () => (await import('./health.ts')).registerReconcile,
  status: async () => (await import('./health.ts')).registerStatus,
  completion: async () => (await import('./usage.ts')).registerCompletion,
};

/**
 * Creates the program with the commands of a word; with all of them for another word, since the help and the
 * error of an unknown command list them all.
 */
export async function createProgram(word = ''): Promise<Command> {
  const program = new Command('scrip')
    .description('Scrip: prepaid vouchers that carry money')
    .version(readVersion(), '--version', 'print the version')
    .addHelpText('after', settingsHelp);
  takeActor(program);
  const isAlone = Object.hasOwn(COMMANDS, word) && word !== 'completion';
  const asked = isAlone ? COMMANDS[word] : undefined;
  for (const load of asked ? [asked] : Object.values(COMMANDS)) (await load())(program);
  prepare(program);
  return program;
}
