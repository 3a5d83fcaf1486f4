import assert from 'node:assert/strict';
import { type ExportWanted, exportBooks } from '../../src/books/export.ts';
import type { Breakdown, Report } from '../../src/books/reports/report.ts';
import { findReport, makeReport } from '../../src/books/reports/reports.ts';
import type { Service } from '../../src/context.ts';

/** Makes and reads reports. */

export type Interval = {
  from: string;
  to: string;
  merchantId?: number;
  section?: string;
  breakdown?: Breakdown;
  at?: Date;
};

/** A report by its number or name. */
export async function make(service: Service, name: string, interval: Interval): Promise<Report> {
  const kind = findReport(name);
  assert.ok(kind);
  return makeReport(service, kind, interval);
}

export type Row = Record<string, string>;

/** The rows of a report, each by its columns. */
export const rowsOf = ({ tables }: Report, section?: string): Row[] =>
  tables
    .filter((table) => section === undefined || table.section === section)
    .flatMap(({ columns, rows }) =>
      rows.map((row) => Object.fromEntries(columns.map((column) => [column, String(row[column] ?? '')]))),
    );

/** An export of closed days as one text. */
export const exportedText = async (service: Service, wanted: ExportWanted) =>
  (await Array.fromAsync(exportBooks(service, wanted))).join('');

/** An amount of two decimals in minor units. */
export const cents = (text: string | undefined) => BigInt((text ?? '').replace('.', ''));

/** Amounts by name, without those of 0. */
export type Figures = Record<string, bigint>;

export class Sums {
  readonly #sums = new Map<string, bigint>();

  add(name: string, amount: bigint): void {
    this.#sums.set(name, (this.#sums.get(name) ?? 0n) + amount);
  }

  figures(): Figures {
    return Object.fromEntries([...this.#sums].filter(([, sum]) => sum !== 0n).sort());
  }
}
