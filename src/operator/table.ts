import { API_KEYS } from './api-keys.ts';
import { APPROVALS } from './approval-operations.ts';
import { AUDIT } from './audit.ts';
import { BATCHES } from './batches.ts';
import { FOUND_VOUCHERS } from './find-vouchers.ts';
import { FLOATS } from './floats.ts';
import { JOBS } from './job-operations.ts';
import { KEYRING } from './keyring.ts';
import { MERCHANTS } from './merchants.ts';
import type { AnyOperation } from './operations.ts';
import { PRODUCTS } from './products.ts';
import { SETTINGS } from './settings.ts';
import { TOKENS } from './token-operations.ts';
import { TRANSACTIONS } from './transactions.ts';
import { USERS } from './users.ts';
import { VOUCHERS } from './vouchers.ts';
import { WEBHOOKS } from './webhooks.ts';

/** Every operation of /operator/v1, in the order of its documentation. */
export const OPERATIONS: readonly AnyOperation[] = [
  ...MERCHANTS,
  ...API_KEYS,
  ...FLOATS,
  ...PRODUCTS,
  ...BATCHES,
  ...VOUCHERS,
  ...FOUND_VOUCHERS,
  ...TRANSACTIONS,
  ...WEBHOOKS,
  ...TOKENS,
  ...USERS,
  ...APPROVALS,
  ...SETTINGS,
  ...JOBS,
  ...AUDIT,
  ...KEYRING,
];
