import type { AnyOperation } from '../operation.ts';
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
import { JOBS } from './job-operations.ts';
import { MERCHANTS } from './merchants.ts';
import { MONEY_OPERATIONS } from './money.ts';
import { PRODUCTS } from './products.ts';
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
  ...AUDIT,
  ...KEYRING,
];

/** Commands without an operation, each with the reason. */
export const COMMANDS_ONLY: Readonly<Record<string, string>> = {
  'backup create': 'It writes files on the machine of the database.',
  'backup list': 'It reads a folder of the machine.',
  'backup verify': 'It starts a copy of the database on the machine.',
  'batch export': 'It writes codes and PINs in the clear. Over the network they leave sealed alone.',
  'db dump': 'It reads everything, and the service is stopped.',
  'db load': 'It makes the database that everything else works on.',
  completion: 'It prints a script for the shell of the machine.',
  'db url': 'It prints the password of the database.',
  doctor: 'It examines the machine that it runs on.',
  'import vouchers': 'It reads codes and PINs in the clear. Over the network they come sealed alone.',
  'keyring drop': 'It changes the key file of the machine.',
  'keyring make': 'A key leaves the machine only by the hand of who keeps it.',
  'keyring seal': 'It changes the key file of the machine.',
  'keyring unseal': 'It changes the key file of the machine.',
  'keyring rotate': 'It reads a new key from the key file of the machine.',
  migrate: 'It changes the schema, as its owner.',
  'voucher export': 'Like the export of a batch, with one voucher. `sheets.order-card` orders a sealed one.',
  restore: 'It replaces the database of the machine.',
  serve: 'It is the service.',
  status: 'It examines the machines of the database.',
  work: 'It is the background work of the service.',
};
