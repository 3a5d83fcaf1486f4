import assert from 'node:assert/strict';
import { type Figure, type Opened, openedBy } from '../../console/src/figures.ts';
import { batches } from '../../src/batches/batches.ts';
import { entries } from '../../src/books/entries.ts';
import { floats } from '../../src/books/floats.ts';
import { type Declaration, figuresOf, formatsOf } from '../../src/books/reports/report.ts';
import { makeReport } from '../../src/books/reports/reports.ts';
import type { Service } from '../../src/context.ts';
import { showSettlement } from '../../src/settlement/show.ts';
import { asOperator } from './harness.ts';
import type { Interval } from './reports.ts';

/** Compares figures with the entries that they declare. */

export type Fields = Readonly<Record<string, unknown>>;
type Shaped = { readonly properties: Readonly<Record<string, object>> };
export type Listed = Awaited<ReturnType<typeof entries.list.run>>;

export const minor = (amount: unknown) => Math.round(Number(amount) * 100);

/** The figure that the schema of an answer declares for a field. */
export const declared = (schema: object | undefined, field: string) =>
  (schema as Shaped).properties[field] as { 'x-entries'?: Figure; items?: object } | undefined;

/** Times are texts in an answer. */
const timesOf = (...[fields, ...names]: readonly [Fields, ...string[]]) =>
  Object.fromEntries(names.map((name) => [name, (fields[name] as Date).toISOString()]));

export class Figures {
  readonly #service: Service;
  readonly #listed = new Map<string, Promise<Listed>>();
  /** How many figures were compared with entries. */
  compared = 0;

  constructor(service: Service) {
    this.#service = service;
  }

  get #caller() {
    return asOperator(this.#service);
  }

  /** Lists the entries that a figure opens into. */
  #list({ given }: Opened): Promise<Listed> {
    const { setsApart, ...wanted } = given;
    const input = { ...wanted, limit: 1, ...(setsApart && { setsApart: true }) } as never;
    const key = JSON.stringify(given);
    const found = this.#listed.get(key) ?? entries.list.run(this.#caller, input);
    this.#listed.set(key, found);
    return found;
  }

  /** Compares a figure with its entries, or with the figures that add up to it. */
  async prove(figure: Figure | undefined, field: string, row: Fields, ...around: Fields[]): Promise<void> {
    const says = `${field} of ${JSON.stringify(row)}`;
    const opened = (figure && openedBy(figure, row, ...around)) ?? assert.fail(`${says} has no entries`);
    if (opened.none !== undefined) return assert.match(opened.none, /^[A-Z].{10,}\.$/, says);
    if (opened.of === 'books.entries') {
      this.compared++;
      const { total } = await this.#list(opened);
      const isCount = /^(rows|redemptions|\w*[rR]eversals)$/.test(field);
      const sum = isCount ? total?.rows : minor(total?.amount);
      const shown = isCount ? Number(row[field]) : minor(row[field]);
      return assert.equal(sum, shown, `${says}: ${JSON.stringify(opened)}`);
    }
    const parts = opened.sumOf.map((part) => {
      const [name = '', ofRows] = part.replace('-', '').split('.');
      const sum = ofRows
        ? (row[name] as Fields[]).reduce((total, each) => total + minor(each[ofRows]), 0)
        : minor(row[name]);
      return part.startsWith('-') ? -sum : sum;
    });
    if (parts.length === 0) return assert.ok(opened.of, says);
    const sum = parts.reduce((total, part) => total + part);
    assert.equal(sum, minor(row[field]), says);
  }

  /** Compares the figures of a report. @returns how many tables it has */
  async ofReport(kind: Declaration, wanted: Interval): Promise<number> {
    const { breakdown, merchantId } = wanted;
    const made = await makeReport(this.#service, kind, wanted);
    const around = {
      ...timesOf(made, 'startsAt', 'endsAt'),
      ...(merchantId !== undefined && { merchantId }),
    };
    const of = breakdown ? kind.breakdowns?.[breakdown] : kind.tables;
    for (const table of made.tables) {
      const definition = of?.find(({ section }) => section === table.section) ?? assert.fail();
      const [formats, figures] = [formatsOf(definition), figuresOf(definition)];
      const isFigure = (name: string) => formats[name] === 'money' || formats[name] === 'count';
      for (const row of table.rows)
        for (const [name, cell] of Object.entries(row))
          if (isFigure(name) && cell !== null && cell !== '')
            await this.prove(figures[name], name, row, table as never, around);
    }
    return made.tables.length;
  }

  async ofSettlement(id: string): Promise<void> {
    const settlement = (await showSettlement.run(this.#caller, { id })) as unknown as Fields;
    const around = { ...settlement, ...timesOf(settlement, 'startsAt', 'endsAt') };
    for (const field of ['carried', 'closing', 'outstanding', 'payable'])
      await this.prove(declared(showSettlement.output, field)?.['x-entries'], field, around);
    const lists = { steps: ['amount'], lines: ['rows', 'amount'], earlier: ['outstanding'] };
    for (const [list, fields] of Object.entries(lists)) {
      const { items } = declared(showSettlement.output, list) ?? {};
      for (const row of settlement[list] as Fields[])
        for (const field of fields)
          await this.prove(declared(items, field)?.['x-entries'], field, row, around);
    }
  }

  /** Compares the floats. @param at now, if it is left out. @returns how many there are */
  async ofFloats(at?: string): Promise<number> {
    const { items: item } = declared(floats.show.output, 'items') ?? {};
    const { items } = await floats.show.run(this.#caller, at === undefined ? {} : { at });
    for (const float of items)
      await this.prove(declared(item, 'balance')?.['x-entries'], 'balance', float, { at });
    return items.length;
  }

  /** Compares the balances of all batches. @returns how many there are */
  async ofBatches(): Promise<number> {
    const { items } = await batches.list.run(this.#caller, { limit: 200 });
    for (const { transactionId } of items) {
      const batch = await batches.show.run(this.#caller, { transactionId });
      await this.prove(declared(batches.show.output, 'balance')?.['x-entries'], 'balance', batch);
    }
    return items.length;
  }
}
