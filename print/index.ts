/** Vouchers for the printer. */

export type { Batch, Design, Voucher } from './batch.ts';
export { writeCsv } from './csv.ts';
export { amountIn, type Language } from './language.ts';
export { LOGO_BYTES_MAX, LogoError, readLogo } from './logo.ts';
export { findUnprintable, isFont, isPrintable } from './names.ts';
export { writeSheet } from './sheet.ts';
export { drawStatement, type Statement, type StatementRow } from './statement.ts';
