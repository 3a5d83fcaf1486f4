import { BANK_ACCOUNTS } from './accounts.ts';
import { BANK_ENTRIES } from './entries.ts';
import { BANK_IMPORT } from './import.ts';
import { BANK_MAPPINGS } from './mappings.ts';
import { BANK_MATCHING } from './match.ts';
import { BANK_STATEMENTS } from './statements.ts';

/** The operations on statements of the bank, in the order of their documentation. */
export const BANK = [
  ...BANK_ACCOUNTS,
  ...BANK_MAPPINGS,
  ...BANK_IMPORT,
  ...BANK_STATEMENTS,
  ...BANK_ENTRIES,
  ...BANK_MATCHING,
];
