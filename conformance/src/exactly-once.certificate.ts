import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Head, NoHistory, readHistory, type Sent } from './exactly-once.history.ts';
import { answerOf, isOpen } from './exactly-once.model.ts';
import { firstUnexplained } from './exactly-once.search.ts';

/** The certificate of a run. Everything in it follows from the history, so that others can check it again. */
export type Certificate = Omit<Head, 'history'> & {
  readonly certificate: 'exactly-once';
  readonly verdict: 'exactly once' | 'broken' | 'too little seen';
  /** What no order of the calls explains; or the outcomes that did not occur. */
  readonly reasons: readonly string[];
  readonly endedAt: string;
  readonly calls: number;
  readonly restarts: number;
  /** By operation and outcome. */
  readonly outcomes: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly cuts: Readonly<Record<string, number>>;
  readonly sha256: string;
};

export const HISTORY_FILE = 'history.ndjson';
export const CERTIFICATE_FILE = 'certificate.json';

const REASONS_MAX = 3;

/**
 * Checks a history.
 * @throws NoHistory
 */
export async function certify(path: string): Promise<Certificate> {
  const { head, calls, end } = await readHistory(path);
  const outcomes = countOutcomes(calls);
  const broken = breaksOf(calls, head);
  const missing = broken.length > 0 ? [] : missingOf(outcomes, head);
  const { history: _history, ...options } = head;
  return {
    certificate: 'exactly-once',
    verdict: broken.length > 0 ? 'broken' : missing.length > 0 ? 'too little seen' : 'exactly once',
    reasons: [...broken, ...missing],
    ...options,
    ...end,
    outcomes,
    cuts: countBy(calls.flatMap(({ cut }) => cut ?? [])),
    sha256: await digestOf(path),
  };
}

/**
 * Checks a history again, and compares the result with the certificate beside it.
 * @throws NoHistory
 */
export async function checkAgain(path: string): Promise<Certificate> {
  const file = join(dirname(path), CERTIFICATE_FILE);
  const text = await readFile(file, 'utf8').catch(() => {
    throw new NoHistory(`there is no ${CERTIFICATE_FILE} beside it: the run was interrupted`);
  });
  const found = await certify(path);
  if (text !== textOf(found)) throw new NoHistory(`${CERTIFICATE_FILE} is not that of this history`);
  return found;
}

export const textOf = (certificate: Certificate) => `${JSON.stringify(certificate, null, 2)}\n`;

/** The certificate in a sentence. */
export function sentenceOf({ verdict, reasons, calls, restarts, url }: Certificate): string {
  if (verdict === 'broken') return `${url} is not exactly-once: ${reasons[0]}`;
  if (verdict === 'too little seen')
    return `The run saw too little for a certificate: no ${reasons.join(', no ')}`;
  return `Every effect of ${calls} calls and ${restarts} restarts at ${url} happened exactly once`;
}

/** The first reasons why the answers are not those of a right server. */
function breaksOf(calls: readonly Sent[], head: Head): string[] {
  // A call that was answered 97 was not looked at.
  const known = calls.filter(({ code }) => code !== '97');
  const reasons = [...overspent(known), ...lost(known, head)];
  for (const batch of groupBy(known, (call) => call.batch).values()) {
    if (reasons.length >= REASONS_MAX) break;
    const found = firstUnexplained(batch);
    if (found)
      reasons.push(
        `no order of the calls explains the answer to ${describe(found.call)}: right would be ${found.right.join(', or ')}`,
      );
  }
  return reasons.slice(0, REASONS_MAX);
}

function describe(call: Sent): string {
  return `call ${call.call} (${call.do} in batch ${call.batch}: ${answerOf(call)})`;
}

/**
 * Whether generations and activations took more from the float than there was. The float is not known, but a
 * refusal (50) shows that it held less than was asked for; what was taken before and after is known.
 */
function overspent(calls: readonly Sent[]): string[] {
  const debits = debitsOf(calls);
  const taken = sum(debits.filter(({ isCertain }) => isCertain));
  const refused = calls.filter(({ code }) => code === '50');
  return refused.flatMap((call) => {
    const before = sum(debits.filter(({ from }) => from < (call.to ?? 0)));
    const isOver = taken >= before + costOf(call);
    return isOver
      ? [`the float paid ${taken} in all, but call ${call.call} was refused ${costOf(call)} of it`]
      : [];
  });
}

/**
 * Whether the float paid less, or more, than it held: it was spent until it refused the smallest amount that
 * was asked of it.
 */
function lost(calls: readonly Sent[], { float, drained }: Head): string[] {
  const refused = calls.filter(({ code }) => code === '50').map(costOf);
  if (float === null || !drained || refused.length === 0) return [];
  const debits = debitsOf(calls);
  const most = sum(debits);
  const paid = sum(debits.filter(({ isCertain }) => isCertain));
  const isRight = paid <= float && most > float - Math.min(...refused);
  return isRight ? [] : [`the float of ${float} paid ${paid} in all, and no more is left in it`];
}

type Debit = { readonly from: number; readonly cost: number; readonly isCertain: boolean };

const sum = (debits: readonly Debit[]) => debits.reduce((total, { cost }) => total + cost, 0);
const costOf = ({ amount, quantity }: Sent) => (amount ?? 0) * (quantity ?? 1);

/** Returns the debits of the float by reference. None can be earlier than its first call. */
function debitsOf(calls: readonly Sent[]): Debit[] {
  const asked = calls.filter(({ do: operation }) => operation === 'generate' || operation === 'activate');
  const copies = groupBy(asked, (call) => `${call.do} ${call.reference} ${costOf(call)}`);
  return [...copies.values()].flatMap((all) => {
    const isCertain = all.some(({ code }) => code === '00');
    if (!isCertain && !all.some(isOpen)) return [];
    return [{ from: Math.min(...all.map(({ from }) => from)), cost: costOf(all[0] as Sent), isCertain }];
  });
}

function countOutcomes(calls: readonly Sent[]): Certificate['outcomes'] {
  const byOperation = [...groupBy(calls, (call) => call.do)].sort();
  return Object.fromEntries(
    byOperation.map(([operation, all]) => [
      operation,
      countBy(all.map(({ code, replayed }) => `${code ?? 'no answer'}${replayed ? ' replayed' : ''}`)),
    ]),
  );
}

/** Like Map.groupBy, which Node 20 lacks. */
function groupBy<T>(items: readonly T[], keyOf: (item: T) => string | number): Map<string | number, T[]> {
  const groups = new Map<string | number, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts = [...groupBy(names, (name) => name)].map(([name, all]) => [name, all.length] as const);
  return Object.fromEntries(counts.sort());
}

/** Outcomes without which a run shows little, by operation. */
const NEEDED: Readonly<Record<'a' | 'b', Readonly<Record<string, readonly string[]>>>> = {
  a: {
    generate: ['00', '00 replayed', 'no answer'],
    redeem: ['00', '00 replayed', '51', '55', '94', 'no answer'],
    balance: ['00', '75'],
    lookup: ['00'],
    update: ['00', '58', 'no answer'],
  },
  b: { activate: ['00', '00 replayed', '41'] },
};

/** What the run of a right server shows, and this one did not. */
function missingOf(outcomes: Certificate['outcomes'], { variants, drained }: Head): string[] {
  const needed = Object.entries({
    ...NEEDED.a,
    ...(variants.includes('b') && NEEDED.b),
  }).filter(([operation]) => operation !== 'update' || variants.includes('a'));
  const missing = needed.flatMap(([operation, codes]) =>
    codes.filter((code) => !outcomes[operation]?.[code]).map((code) => `${operation} with ${code}`),
  );
  const isSpent = !drained || (outcomes['generate']?.['50'] ?? 0) > 0;
  return isSpent ? missing : [...missing, 'refusal of the float, which is too large to be spent'];
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of createReadStream(path)) hash.update(piece as Buffer);
  return hash.digest('hex');
}
