import type { Call } from './model.calls.ts';
import { hasMoreDecimals, MERCHANTS, minorOf } from './model.state.ts';

/**
 * The refusals that do not depend on the state of the service: credentials, form, values and permissions.
 */

/** All products of the model have two decimals, so an amount with more is refused before any product. */
const DECIMALS = 2;
const OPERATOR = [
  ...['block', 'unblock', 'unlock', 'replace', 'extend', 'adjust', 'cashOut', 'cancelVoucher'],
  ...['cancel', 'produce', 'topUp'],
];
const READS = ['download', 'lookup', 'details', 'list'];
/** The call whose reference is not checked. All others that may be refused for it change something. */
const WITHOUT_REFERENCE = 'balance';

export function refusedAtOnce(call: Call): string | undefined {
  if (OPERATOR.includes(call.do)) return undefined;
  const merchant: { mayUpdate?: boolean; mayNothing?: boolean; suspended?: boolean } =
    MERCHANTS[call.merchant] ?? {};
  if (call.flaw === 'secret') return '01';
  if (merchant.suspended) return '04';
  if (call.do === 'download' && merchant.mayNothing) return '03';
  if (READS.includes(call.do)) return undefined;
  if (call.flaw === 'form') return '30';
  // References that begin so are made by updates.
  if (call.do !== WITHOUT_REFERENCE && 'reference' in call && /^(CANCEL|NEW)-/.test(call.reference ?? ''))
    return '18';
  const value = call.do === 'generate' ? refusedOrder(call) : refusedAmount(call);
  if (value) return value;
  return merchant.mayNothing || (call.do === 'update' && !merchant.mayUpdate) ? '03' : undefined;
}

function refusedOrder({ quantity, amount }: Extract<Call, { do: 'generate' }>): string | undefined {
  if (quantity < 1) return '16';
  return amount !== null && (amount <= 0 || hasMoreDecimals(amount, DECIMALS)) ? '13' : undefined;
}

function refusedAmount(call: Call): string | undefined {
  const amount = 'amount' in call ? call.amount : null;
  if (amount === null || amount === undefined) return undefined;
  const minor = minorOf(amount);
  return minor === undefined || (minor === 0 && call.do !== 'update') ? '13' : undefined;
}
