import { API_KEYS } from './api-keys.ts';
import { APPROVALS } from './approval-operations.ts';
import { BATCHES } from './batches.ts';
import { FLOATS } from './floats.ts';
import { MERCHANTS } from './merchants.ts';
import type { AnyOperation } from './operations.ts';
import { PRODUCTS } from './products.ts';
import { SETTINGS } from './settings.ts';
import { TOKENS } from './token-operations.ts';
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
  ...WEBHOOKS,
  ...TOKENS,
  ...USERS,
  ...APPROVALS,
  ...SETTINGS,
];
