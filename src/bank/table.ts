import { tableOf } from '../operation.ts';
import { accounts } from './accounts.ts';
import { mappings } from './csv.ts';
import { bankEntries, bankMovements, bankOpen } from './entries.ts';
import { importStatement } from './import.ts';
import { matching } from './match.ts';
import { payIn } from './pay-in.ts';
import { listStatements } from './statements.ts';

/** The operations on statements of the bank, in the order of their documentation. */
export const BANK = tableOf(
  ...Object.values(payIn),
  ...[...Object.values(accounts), ...Object.values(mappings), importStatement, listStatements],
  ...[bankEntries, bankOpen, bankMovements, ...Object.values(matching)],
);
