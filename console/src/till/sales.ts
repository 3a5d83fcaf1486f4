import { ApiProblem, send } from '../api.ts';
import { maskCode, type Serial } from './card.ts';
import type { Receipt } from './receipt.tsx';

/**
 * The sales of this browser. Each is stored before it is sent, so that its outcome can be found after a lost
 * connection or a reload. Codes and PINs are in memory only.
 */

export type Kind = 'redeem' | 'activate' | 'cash-out';

export type Sale = {
  readonly reference: string;
  readonly kind: Kind;
  /** In major units; null if the card decides. */
  readonly amount: number | null;
  readonly currency: string | null;
  /** The masked code, or the serial number. */
  readonly card: string;
  /** The time of the latest attempt. */
  readonly sentAt: string;
  /** `sent`: its outcome is unknown. */
  readonly state: 'sent' | 'booked' | 'given-up';
};

/** A till needs the latest sales for receipts and corrections. Those whose outcome is unknown all stay. */
const KEPT = 20;

const prefixOf = (merchantId: string) => `scrip.till.${merchantId}.`;
/** A sale has a key of its own, so that two tabs never overwrite each other's. */
const keyOf = (merchantId: string, { reference }: Sale) => prefixOf(merchantId) + reference;

/** The stored sales as text, which changes when one of them does. */
export const storedSales = (merchantId: string): string => JSON.stringify(listSales(merchantId));

/** Returns the sales of a merchant in this browser, newest first. */
function listSales(merchantId: string): Sale[] {
  const prefix = prefixOf(merchantId);
  return Object.keys(localStorage)
    .filter((key) => key.startsWith(prefix))
    .map((key) => readSale(localStorage.getItem(key) ?? '', key.slice(prefix.length)))
    .sort((one, other) => other.sentAt.localeCompare(one.sentAt));
}

/** A sale whose entry is damaged is not forgotten: its reference, which is in the key, finds its outcome. */
function readSale(text: string, reference: string): Sale {
  try {
    const sale = JSON.parse(text) as Sale | null;
    if (sale?.reference === reference && typeof sale.sentAt === 'string') return sale;
  } catch {
    // It is no JSON.
  }
  const sentAt = new Date(0).toISOString();
  return { reference, kind: 'redeem', amount: null, currency: null, card: '?', sentAt, state: 'sent' };
}

const listeners = new Set<() => void>();

/** Calls a function when this tab or another one has changed a sale. @returns a function that ends this */
export function onSales(changed: () => void): () => void {
  listeners.add(changed);
  addEventListener('storage', changed);
  return () => {
    listeners.delete(changed);
    removeEventListener('storage', changed);
  };
}

const changed = () => {
  for (const listener of listeners) listener();
};

/** @throws if the browser stores nothing */
function saveSale(merchantId: string, sale: Sale): void {
  localStorage.setItem(keyOf(merchantId, sale), JSON.stringify(sale));
  const decided = listSales(merchantId).filter(({ state }) => state !== 'sent');
  for (const old of decided.slice(KEPT)) localStorage.removeItem(keyOf(merchantId, old));
  changed();
}

export function forgetSale(merchantId: string, sale: Sale): void {
  localStorage.removeItem(keyOf(merchantId, sale));
  changed();
}

export type CodeAndPin = { readonly code: string; readonly pin: string };
/** What a sale is sent with: a card, or the number of one that the merchant generated. */
export type Given = CodeAndPin | Serial;

/** Returns how lists and receipts name a card. */
export const nameOf = (given: Given): string => ('code' in given ? maskCode(given.code) : given.serialNumber);

function bodyOf({ kind, amount, reference }: Sale, given: Given): object {
  if (kind === 'redeem') return { ...given, amount, reference };
  return { ...given, ...('serialNumber' in given && amount !== null && { value: amount }), reference };
}

/** A service that has not answered by then is asked again. */
const ANSWER_MS = 10_000;
const PAUSES_MS = [500, 1_000, 2_000, 4_000];

/**
 * Whether an answer says nothing about the sale, and the same request may succeed later. One without a code
 * comes from a proxy.
 */
const isOpen = ({ status, code }: ApiProblem) =>
  status === 401 || status === 429 || status >= 500 || code === 'no-answer';

type Course = {
  /** Ends the attempts. The outcome then stays unknown. */
  readonly stop: AbortSignal;
  /** Whether a person is signed in. */
  isSignedIn(): boolean;
  /** Is called when an attempt got no answer. */
  onLost(): void;
};

/**
 * Sends a sale until its outcome is known, always under the same reference. Only the tab that sends a sale
 * holds its lock.
 * @returns the receipt; undefined if the outcome is unknown, because the attempts were stopped, or a later
 *   one was refused while an earlier one may still arrive
 * @throws ApiProblem if the sale was refused
 */
export function sendSale(merchantId: string, sale: Sale, given: Given, course: Course) {
  const body = bodyOf(sale, given);
  return navigator.locks.request(keyOf(merchantId, sale), async () => {
    for (let attempt = 0; ; attempt++) {
      saveSale(merchantId, { ...sale, sentAt: new Date().toISOString() });
      try {
        const signal = AbortSignal.any([course.stop, AbortSignal.timeout(ANSWER_MS)]);
        const receipt = await send<Receipt | undefined>('POST', `/till/${sale.kind}`, { body, signal });
        if (!receipt) throw new ApiProblem(0, {});
        saveSale(merchantId, { ...sale, state: 'booked' });
        return receipt;
      } catch (error) {
        if (!(error instanceof ApiProblem)) throw error;
        const isUnknown = isOpen(error);
        if (!isUnknown && attempt === 0) {
          forgetSale(merchantId, sale);
          throw error;
        }
        if (!isUnknown || course.stop.aborted) return undefined;
        course.onLost();
        await pause(attempt, course);
        if (course.stop.aborted) return undefined;
      }
    }
  });
}

async function pause(attempt: number, { stop, isSignedIn }: Course): Promise<void> {
  const ms = PAUSES_MS[attempt] ?? PAUSES_MS.at(-1);
  do await new Promise((resolve) => setTimeout(resolve, ms));
  while (!isSignedIn() && !stop.aborted);
}

export type Found = { readonly state: 'sending' | 'absent' } | { readonly state: 'booked'; receipt: Receipt };

/** Finds out what became of a sale. @throws ApiProblem */
export async function findOutcome(merchantId: string, sale: Sale): Promise<Found> {
  const { held = [] } = await navigator.locks.query();
  if (held.some(({ name }) => name === keyOf(merchantId, sale))) return { state: 'sending' };
  try {
    const receipt = await findReceipt(sale.reference);
    saveSale(merchantId, { ...sale, state: 'booked' });
    return { state: 'booked', receipt };
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return { state: 'absent' };
    throw error;
  }
}

/** @throws ApiProblem, with the status 404 if nothing was booked under the reference */
export const findReceipt = (reference: string): Promise<Receipt> =>
  send<Receipt>('POST', '/till/find', { body: { reference } });

/** Reverses a redemption, or ensures that it is never booked. @throws ApiProblem */
export async function giveUpSale(merchantId: string, sale: Sale): Promise<void> {
  await send('POST', '/redemptions/give-up', { body: { reference: sale.reference } });
  saveSale(merchantId, { ...sale, state: 'given-up' });
}
