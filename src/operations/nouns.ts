import type { AnyOperation } from '../operation.ts';

/**
 * The nouns with operations, in the order of the documentation. A noun is registered here alone: the table of
 * all operations and the command line are made of this list. It is loaded only when it is needed, so that no
 * command waits for the modules of others.
 */

type Load = () => Promise<readonly AnyOperation[]>;

/**
 * What the help of the command says of a noun, and how its operations are loaded. Without a text, it has no
 * command of its own; without a loader, its operations are made of the table of all (table.ts).
 */
type Noun = readonly [about: string | null, load: Load | null];

export const NOUNS: Readonly<Record<string, Noun>> = {
  merchant: [
    'merchants, which sell and accept vouchers',
    async () => [
      ...(await import('../api-keys/create-merchant.ts')).FIRST_KEYS,
      ...(await import('../merchants/merchants.ts')).MERCHANTS,
    ],
  ],
  'api-key': [
    'API keys, with which merchants call',
    async () => (await import('../api-keys/keys.ts')).API_KEYS,
  ],
  'daily-limit': [
    'daily limits, which bound what merchants and their keys issue and redeem',
    async () => (await import('../api-keys/daily-limits.ts')).DAILY_LIMITS,
  ],
  float: [
    'floats, the money that merchants have paid in advance',
    async () => [
      ...(await import('../merchants/floats.ts')).FLOATS,
      ...(await import('../books/floats.ts')).FLOAT_MONEY,
    ],
  ],
  product: [
    'products, the terms on which vouchers are generated',
    async () => (await import('../products/products.ts')).PRODUCTS,
  ],
  design: [
    'designs, the look of printed cards',
    async () => (await import('../batches/design-preview.ts')).CARD_DESIGNS,
  ],
  batch: ['batches of vouchers', async () => (await import('../batches/batches.ts')).BATCHES],
  sheets: [null, async () => (await import('../batches/order-sheets.ts')).SHEETS],
  voucher: [
    'single vouchers, by serial number',
    async () => [
      ...(await import('../vouchers/operate.ts')).VOUCHERS,
      ...(await import('../vouchers/find.ts')).FOUND_VOUCHERS,
      ...(await import('../books/vouchers.ts')).VOUCHER_MONEY,
      ...(await import('./background.ts')).BACKGROUND,
    ],
  ],
  transaction: [
    'transactions of all merchants',
    async () => (await import('../transactions/transactions.ts')).TRANSACTIONS,
  ],
  redemption: [
    'redemptions',
    async () => [
      ...(await import('../redemptions/correct.ts')).REDEMPTIONS,
      ...(await import('../books/refunds.ts')).REFUNDS,
    ],
  ],
  decline: [
    'requests of merchants that were declined',
    async () => (await import('../vouchers/declines.ts')).DECLINES,
  ],
  request: [
    'requests, by the X-Request-Id of their answers',
    async () => (await import('./requests.ts')).REQUESTS,
  ],
  webhook: [
    'webhook endpoints, to which merchants have events sent',
    async () => [
      ...(await import('../webhooks/endpoints.ts')).WEBHOOKS,
      ...(await import('../webhooks/deliveries.ts')).DELIVERIES,
    ],
  ],
  token: [
    'tokens, with which machines call /operator/v1 and /portal/v1',
    async () => (await import('../people/tokens.ts')).TOKENS,
  ],
  user: [
    'people who sign in to the console and the portal',
    async () => [
      ...(await import('../people/invite.ts')).INVITATIONS,
      ...(await import('../people/users.ts')).USERS,
      ...(await import('../people/persons.ts')).PERSONS,
    ],
  ],
  approval: ['operations that one person proposes and another approves', null],
  inbox: ['what waits for somebody, and what is new', null],
  settings: [
    'settings that can be changed while the service runs',
    async () => [
      ...(await import('../settings/settings.ts')).SETTINGS,
      ...(await import('../settings/limited-network.ts')).LIMITED_NETWORK,
      ...(await import('../settings/letterhead.ts')).LETTERHEAD,
    ],
  ],
  setup: [
    'the steps from an empty installation to the first redemption',
    async () => (await import('./setup.ts')).SETUP,
  ],
  installation: [null, async () => (await import('./installation.ts')).INSTALLATION],
  books: [
    'the books: closed days that never change, and reports',
    async () => {
      const { DAY_ENDS } = await import('../settlement/fees.ts');
      return (await import('../books/table.ts')).booksWith(DAY_ENDS);
    },
  ],
  settlement: [
    'settlements with the merchants that redeem',
    async () => (await import('../settlement/table.ts')).SETTLEMENT,
  ],
  bank: [
    'statements of your bank, matched with the books',
    async () => (await import('../bank/table.ts')).BANK,
  ],
  job: [
    'long work in the background',
    async () => [...(await import('../jobs/jobs.ts')).JOBS, ...(await import('./background.ts')).BACKGROUND],
  ],
  audit: [
    'the record of all changes by operators, a chain in which every edit is noticed',
    async () => (await import('../audit/entries.ts')).AUDIT,
  ],
  keyring: [
    'the key ring, under which codes, PINs and webhook secrets are sealed',
    async () => (await import('../rotation/rotate.ts')).KEYRING,
  ],
  backup: ['backups of the database', async () => (await import('../backups/note.ts')).BACKUPS],
};
