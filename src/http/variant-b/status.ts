import type { Dialect } from '../endpoint.ts';

/**
 * Variant B answers HTTP 200 to every request that is valid at transport level. The outcome is in
 * `statusCode`.
 */
export const STATUSES: Dialect['statuses'] = {
  '98': 404,
  '01': 401,
  '97': 429,
  '04': 200,
  '30': 200,
  '18': 200,
  '16': 200,
  '13': 200,
  '17': 200,
  '03': 200,
  '15': 200,
  '61': 200,
  '94': 200,
  '14': 200,
  '75': 200,
  '55': 200,
  '44': 200,
  '43': 200,
  '54': 200,
  '40': 200,
  '41': 200,
  '47': 200,
  '42': 200,
  '58': 200,
  '51': 200,
  '50': 200,
  '60': 200,
  '91': 503,
};

/** Variant B's answer to a look-up that finds nothing. It is not a refusal, and only this call uses it. */
export const NO_TRANSACTION = { statusCode: '99', message: 'Transaction not found' } as const;
