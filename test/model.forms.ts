import { hasMoreDecimals, MERCHANTS, minorOf, PRODUCTS } from './model.state.ts';
import type { Call } from './model.ts';

/**
 * What a call is refused for whatever the service holds: who asks, the form of it, its values, what the
 * merchant may do.
 */

const DAY_MS = 86_400_000;
/** An order of a product that does not exist is held to these. */
const NO_PRODUCT = { most: 5_000_000, decimals: 4 };
const OPERATOR = ['block', 'unblock', 'unlock', 'replace', 'extend', 'cancel', 'produce', 'topUp'];
const READS = ['download', 'lookup', 'details', 'list'];
/** All that change something keep a reference. */
const WITHOUT_REFERENCE = 'balance';

export function refusedAtOnce(call: Call, now: number): string | undefined {
  if (OPERATOR.includes(call.do)) return undefined;
  const merchant: { mayUpdate?: boolean; mayNothing?: boolean; suspended?: boolean } =
    MERCHANTS[call.merchant] ?? {};
  if (call.flaw === 'secret') return '01';
  if (merchant.suspended) return '04';
  if (READS.includes(call.do)) return undefined;
  if (call.flaw === 'form') return '30';
  // Names of what an update makes of a reference.
  if (call.do !== WITHOUT_REFERENCE && 'reference' in call && /^(CANCEL|NEW)-/.test(call.reference ?? ''))
    return '18';
  const value = call.do === 'generate' ? refusedOrder(call, now) : refusedAmount(call);
  if (value) return value;
  return merchant.mayNothing || (call.do === 'update' && !merchant.mayUpdate) ? '03' : undefined;
}

function refusedOrder(call: Extract<Call, { do: 'generate' }>, now: number): string | undefined {
  const product = PRODUCTS[call.product];
  if (call.quantity < 1 || call.quantity > (product ?? NO_PRODUCT).most) return '16';
  const { amount, until } = call;
  if (amount !== null && (amount <= 0 || hasMoreDecimals(amount, product ? 2 : NO_PRODUCT.decimals)))
    return '13';
  return until !== null && until < now + DAY_MS ? '17' : undefined;
}

function refusedAmount(call: Call): string | undefined {
  const amount = 'amount' in call ? call.amount : null;
  if (amount === null || amount === undefined) return undefined;
  const minor = minorOf(amount);
  return minor === undefined || (minor === 0 && call.do !== 'update') ? '13' : undefined;
}
