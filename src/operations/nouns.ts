import type { AnyOperation } from '../operation.ts';

/**
 * The nouns with operations, in the order of the documentation. A noun is registered here alone: the table of
 * all operations and the command line are made of this list. It is loaded only when it is needed, so that no
 * command waits for the modules of others.
 */

/** A module that declares operations of a noun, in the order of their documentation. */
type Module = () => Promise<{ readonly OPERATIONS: readonly AnyOperation[] }>;

/** What the help of the command says of a noun, and how its operations are loaded. */
type Noun = {
  /** Null: the noun has no command of its own. */
  readonly about: string | null;
  /** Undefined: its operations are made of the table of all (table.ts). */
  readonly load: (() => Promise<readonly AnyOperation[]>) | undefined;
};

function noun(about: string | null, ...modules: readonly Module[]): Noun {
  if (modules.length === 0) return { about, load: undefined };
  const load = async () => {
    const loaded = await Promise.all(modules.map((module) => module()));
    return loaded.flatMap(({ OPERATIONS }) => OPERATIONS);
  };
  return { about, load };
}

export const NOUNS: Readonly<Record<string, Noun>> = {
  merchant: noun(
    'merchants, which sell and accept vouchers',
    () => import('../api-keys/create-merchant.ts'),
    () => import('../merchants/merchants.ts'),
  ),
  'api-key': noun('API keys, with which merchants call', () => import('../api-keys/keys.ts')),
  'daily-limit': noun(
    'daily limits, which bound what merchants and their keys issue and redeem',
    () => import('../api-keys/daily-limits.ts'),
  ),
  float: noun(
    'floats, the money that merchants have paid in advance',
    () => import('../merchants/floats.ts'),
    () => import('../books/floats.ts'),
  ),
  product: noun(
    'products, the terms on which vouchers are generated',
    () => import('../products/products.ts'),
  ),
  design: noun(
    'designs, the look of printed cards',
    () => import('../products/designs.ts'),
    () => import('../batches/design-preview.ts'),
  ),
  batch: noun('batches of vouchers', () => import('../batches/batches.ts')),
  sheets: noun(null, () => import('../batches/order-sheets.ts')),
  voucher: noun(
    'single vouchers, by serial number',
    () => import('../vouchers/operate.ts'),
    () => import('../vouchers/find.ts'),
    () => import('../books/vouchers.ts'),
    () => import('./background.ts'),
  ),
  transaction: noun('transactions of all merchants', () => import('../transactions/transactions.ts')),
  redemption: noun(
    'redemptions',
    () => import('../redemptions/correct.ts'),
    () => import('../books/refunds.ts'),
  ),
  decline: noun('requests of merchants that were declined', () => import('../vouchers/declines.ts')),
  request: noun('requests, by the X-Request-Id of their answers', () => import('./requests.ts')),
  webhook: noun(
    'webhook endpoints, to which merchants have events sent',
    () => import('../webhooks/endpoints.ts'),
    () => import('../webhooks/deliveries.ts'),
  ),
  token: noun(
    'tokens, with which machines call /operator/v1 and /portal/v1',
    () => import('../people/tokens.ts'),
  ),
  user: noun(
    'people who sign in to the console and the portal',
    () => import('../people/invite.ts'),
    () => import('../people/users.ts'),
    () => import('../people/persons.ts'),
  ),
  approval: noun('operations that one person proposes and another approves'),
  inbox: noun('what waits for somebody, and what is new'),
  settings: noun(
    'settings that can be changed while the service runs',
    () => import('../settings/settings.ts'),
    () => import('../settings/limited-network.ts'),
    () => import('../settings/letterhead.ts'),
  ),
  setup: noun('the steps from an empty installation to the first redemption', () => import('./setup.ts')),
  installation: noun(null, () => import('./installation.ts')),
  books: noun(
    'the books: closed days that never change, and reports',
    () => import('../books/days.ts'),
    () => import('../settlement/fees.ts'),
    () => import('../books/verify.ts'),
    () => import('../books/reports/reports.ts'),
    () => import('../books/entries.ts'),
    () => import('../books/own.ts'),
    () => import('../books/escheat.ts'),
    () => import('../books/redeemed.ts'),
    () => import('../books/export.ts'),
    () => import('../books/gl.ts'),
    () => import('../books/rules.ts'),
  ),
  settlement: noun(
    'settlements with the merchants that redeem',
    () => import('../settlement/settlements.ts'),
    () => import('../settlement/show.ts'),
    () => import('../settlement/draft.ts'),
    () => import('../settlement/approve.ts'),
    () => import('../settlement/pay.ts'),
    () => import('../settlement/document.ts'),
    () => import('../settlement/proof.ts'),
    () => import('../settlement/payout-file.ts'),
    () => import('../settlement/terms.ts'),
    () => import('../settlement/disputes.ts'),
  ),
  bank: noun(
    'statements of your bank, matched with the books',
    () => import('../bank/pay-in.ts'),
    () => import('../bank/accounts.ts'),
    () => import('../bank/csv.ts'),
    () => import('../bank/import.ts'),
    () => import('../bank/statements.ts'),
    () => import('../bank/entries.ts'),
    () => import('../bank/match.ts'),
  ),
  job: noun(
    'long work in the background',
    () => import('../jobs/jobs.ts'),
    () => import('./background.ts'),
  ),
  audit: noun(
    'the record of all changes by operators, a chain in which every edit is noticed',
    () => import('../audit/entries.ts'),
  ),
  keyring: noun(
    'the key ring, under which codes, PINs and webhook secrets are sealed',
    () => import('../rotation/rotate.ts'),
  ),
  backup: noun('backups of the database', () => import('../backups/note.ts')),
};
