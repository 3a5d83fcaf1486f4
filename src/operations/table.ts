import { FIRST_KEYS } from '../api-keys/create-merchant.ts';
import { DAILY_LIMITS } from '../api-keys/daily-limits.ts';
import { API_KEYS } from '../api-keys/keys.ts';
import { AUDIT } from '../audit/entries.ts';
import { BACKUPS } from '../backups/note.ts';
import { BANK } from '../bank/table.ts';
import { BATCHES } from '../batches/batches.ts';
import { CARD_DESIGNS } from '../batches/design-preview.ts';
import { SHEETS } from '../batches/order-sheets.ts';
import { booksWith } from '../books/books.ts';
import { FLOAT_MONEY } from '../books/floats.ts';
import { REFUNDS } from '../books/refunds.ts';
import { VOUCHER_MONEY } from '../books/vouchers.ts';
import { JOBS } from '../jobs/jobs.ts';
import { FLOATS } from '../merchants/floats.ts';
import { MERCHANTS } from '../merchants/merchants.ts';
import type { AnyOperation } from '../operation.ts';
import { INVITATIONS } from '../people/invite.ts';
import { PERSONS } from '../people/persons.ts';
import { TOKENS } from '../people/tokens.ts';
import { USERS } from '../people/users.ts';
import { PRODUCTS } from '../products/products.ts';
import { REDEMPTIONS } from '../redemptions/correct.ts';
import { KEYRING } from '../rotation/rotate.ts';
import { LETTERHEAD } from '../settings/letterhead.ts';
import { LIMITED_NETWORK } from '../settings/limited-network.ts';
import { SETTINGS } from '../settings/settings.ts';
import { DAY_ENDS } from '../settlement/fees.ts';
import { SETTLEMENT } from '../settlement/table.ts';
import { TRANSACTIONS } from '../transactions/transactions.ts';
import { DECLINES } from '../vouchers/declines.ts';
import { FOUND_VOUCHERS } from '../vouchers/find.ts';
import { VOUCHERS } from '../vouchers/operate.ts';
import { DELIVERIES } from '../webhooks/deliveries.ts';
import { WEBHOOKS } from '../webhooks/endpoints.ts';
import { approvalsOf } from './approvals.ts';
import { BACKGROUND } from './background.ts';
import { inboxOf } from './inbox.ts';
import { INSTALLATION } from './installation.ts';
import { REQUESTS } from './requests.ts';
import { SETUP } from './setup.ts';

/** Every operation of /operator/v1, in the order of its documentation. */
export const OPERATIONS: readonly AnyOperation[] = [
  ...FIRST_KEYS,
  ...MERCHANTS,
  ...API_KEYS,
  ...DAILY_LIMITS,
  ...FLOATS,
  ...FLOAT_MONEY,
  ...VOUCHER_MONEY,
  ...PRODUCTS,
  ...CARD_DESIGNS,
  ...BATCHES,
  ...SHEETS,
  ...VOUCHERS,
  ...FOUND_VOUCHERS,
  ...TRANSACTIONS,
  ...REDEMPTIONS,
  ...REFUNDS,
  ...DECLINES,
  ...REQUESTS,
  ...WEBHOOKS,
  ...DELIVERIES,
  ...TOKENS,
  ...INVITATIONS,
  ...USERS,
  ...PERSONS,
  ...approvalsOf(() => OPERATIONS),
  ...inboxOf(() => OPERATIONS),
  ...SETTINGS,
  ...LIMITED_NETWORK,
  ...LETTERHEAD,
  ...SETUP,
  ...INSTALLATION,
  ...booksWith(DAY_ENDS),
  ...SETTLEMENT,
  ...BANK,
  ...JOBS,
  ...BACKGROUND,
  ...AUDIT,
  ...KEYRING,
  ...BACKUPS,
];
