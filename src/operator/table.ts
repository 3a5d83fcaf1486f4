import { JOBS } from '../jobs/jobs.ts';
import type { AnyOperation } from '../operation.ts';
import { PRODUCTS } from '../products/products.ts';
import { API_KEYS } from './api-keys.ts';
// biome-ignore lint/suspicious/noImportCycles: the other half is loaded when an operation runs
import { APPROVALS } from './approval-operations.ts';
import { AUDIT } from './audit.ts';
import { BANK } from './bank.ts';
import { BANK_MATCHING } from './bank-matching.ts';
import { BATCHES } from './batches.ts';
import { BOOKS } from './books.ts';
import { BOOKS_FILES } from './books-files.ts';
import { BOOKS_RULES } from './books-rules.ts';
import { DELIVERIES } from './deliveries.ts';
import { DISPUTES } from './disputes.ts';
import { FOUND_VOUCHERS } from './find-vouchers.ts';
import { FLOATS } from './floats.ts';
import { BACKGROUND } from './job-operations.ts';
import { MERCHANTS } from './merchants.ts';
import { MONEY_OPERATIONS } from './money.ts';
import { KEYRING, SETTINGS } from './settings.ts';
import { SETTLEMENT_DOCUMENTS } from './settlement-documents.ts';
import { SETTLEMENT_TERMS } from './settlement-terms.ts';
import { SETTLEMENTS } from './settlements.ts';
import { SHEETS } from './sheets.ts';
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
  ...MONEY_OPERATIONS,
  ...PRODUCTS,
  ...BATCHES,
  ...SHEETS,
  ...VOUCHERS,
  ...FOUND_VOUCHERS,
  ...TRANSACTIONS,
  ...WEBHOOKS,
  ...DELIVERIES,
  ...TOKENS,
  ...USERS,
  ...APPROVALS,
  ...SETTINGS,
  ...BOOKS,
  ...BOOKS_FILES,
  ...BOOKS_RULES,
  ...SETTLEMENTS,
  ...SETTLEMENT_DOCUMENTS,
  ...SETTLEMENT_TERMS,
  ...DISPUTES,
  ...BANK,
  ...BANK_MATCHING,
  ...JOBS,
  ...BACKGROUND,
  ...AUDIT,
  ...KEYRING,
];
