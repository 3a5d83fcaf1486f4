import { hash } from 'node:crypto';
import { leafHash, rootOf } from '../../src/books/merkle.ts';

/** Proofs of closed days as a forger works on them: all parts can be changed, and all hashes made again. */

type Slice = { readonly text: string; rows: string[] };
export type Day = { slices: Slice[]; closing: string[]; totals: string };
export type Forged = { header: string; accounts: string[]; days: Day[] };

/** Splits a line of a proof after its first word. */
export function wordOf(line: string): [word: string, text: string] {
  const at = line.indexOf(' ');
  return [line.slice(0, at), line.slice(at + 1)];
}

export function readProof(text: string): Forged {
  const [header = '', ...lines] = text.trimEnd().split('\n');
  const forged: Forged = { header, accounts: [], days: [] };
  let slices: Slice[] = [];
  let totals = '';
  for (const line of lines) {
    const [word, rest] = wordOf(line);
    if (word === 'slice') slices.push({ text: rest, rows: [] });
    else if (word === 'row') slices.at(-1)?.rows.push(rest);
    else if (word === 'totals') totals = rest;
    else if (word === 'closing') {
      forged.days.push({ slices, closing: rest.split('|'), totals });
      slices = [];
    } else forged.accounts.push(line);
  }
  return forged;
}

const COLUMN = { version: 0, previous: 1, rows: 6, first: 7, last: 8, root: 9, totals: 10 };

/** Returns the text that is hashed, of the values in the line of a closing. */
export function textOfClosing(values: readonly string[]): string {
  const [version, ...others] = values.map((value, at) =>
    at === COLUMN.previous || at === COLUMN.root || at === COLUMN.totals
      ? Buffer.from(value, 'base64').toString('hex')
      : value || null,
  );
  return JSON.stringify(['scrip closing', ...others.slice(0, -1), Number(version), others.at(-1)]);
}

/** Writes a proof, with the hashes that it had, or with right ones. */
export function writeProof({ header, accounts, days }: Forged, areRight = true): string {
  const lines = [header, ...accounts];
  let previous = days[0]?.closing[COLUMN.previous] ?? '';
  for (const { slices, closing, totals } of days) {
    const texts = slices
      .filter(({ rows }) => rows.length > 0)
      .map(({ text: closed, rows }) => {
        const [startsAt] = closed.split('|');
        const made = [startsAt, rows.length, rootOf(rows.map(leafHash)).toString('hex')].join('|');
        const text = areRight ? made : closed;
        lines.push(`slice ${text}`, ...rows.map((row) => `row ${row}`));
        return text;
      });
    const rows = slices.flatMap((slice) => slice.rows);
    const idOf = (row: string | undefined) => row?.slice(0, 36) ?? '';
    const made = [...closing];
    made[COLUMN.previous] = previous;
    made[COLUMN.rows] = String(rows.length);
    made[COLUMN.first] = idOf(rows[0]);
    made[COLUMN.last] = idOf(rows.at(-1));
    made[COLUMN.root] = rootOf(texts.map(leafHash)).toString('base64');
    made[COLUMN.totals] = hash('sha256', totals, 'base64');
    const values = areRight ? made : closing;
    previous = leafHash(textOfClosing(values)).toString('base64');
    lines.push(`totals ${totals}`, `closing ${values.join('|')}`);
  }
  return `${lines.join('\n')}\n`;
}

type Balance = Record<'currency' | 'account_kind' | 'opening' | 'debits' | 'credits' | 'closing', string>;

/** Makes the totals of all days right again, as a forger with the database can. */
export function balance({ accounts, days }: Forged): void {
  const kinds = new Map(accounts.map((line) => wordOf(wordOf(line)[1])));
  const kindOf = (account: string) =>
    Number(account) > 1e10 ? 'VOUCHER' : Number(account) >= 5e9 ? 'RESERVE' : (kinds.get(account) ?? '');
  let before = new Map<string, bigint>();
  for (const [at, day] of days.entries()) {
    const totals = JSON.parse(day.totals) as { balances: Balance[] };
    if (at === 0) before = new Map(totals.balances.map((each) => [keyOf(each), BigInt(each.opening)]));
    const sums = new Map([...before.keys()].map((key) => [key, { debits: 0n, credits: 0n }]));
    const sumOf = (key: string) => {
      const sum = sums.get(key) ?? { debits: 0n, credits: 0n };
      sums.set(key, sum);
      return sum;
    };
    for (const row of day.slices.flatMap(({ rows }) => rows)) {
      const [, , debit = '', credit = '', amount = '', currency = ''] = row.split('|');
      sumOf(`${currency} ${kindOf(debit)}`).debits += BigInt(amount);
      sumOf(`${currency} ${kindOf(credit)}`).credits += BigInt(amount);
    }
    totals.balances = [...sums].map(([key, { debits, credits }]) => {
      const opening = before.get(key) ?? 0n;
      const closing = opening + credits - debits;
      before.set(key, closing);
      const [currency = '', account_kind = ''] = key.split(' ');
      const [one, two, three, four] = [opening, debits, credits, closing].map(String) as [
        string,
        string,
        string,
        string,
      ];
      return { currency, account_kind, opening: one, debits: two, credits: three, closing: four };
    });
    day.totals = JSON.stringify(totals);
  }
}

const keyOf = ({ currency, account_kind }: Balance) => `${currency} ${account_kind}`;
