import * as declared from '../../generated/en.labels.ts';

/**
 * The English labels. Most are declared with the operations, their fields and their words (src/), or derived
 * from a name (label.ts). Here are those of names that no schema has: in the audit, in pages.
 */

type Words = Readonly<Record<string, string>>;

/** The names of fields in columns, in details, and as labels of inputs. */
const fields: Words = {
  ...declared.fields,
  address: 'Network address',
  agent: 'Browser',
  effect: 'Change',
  factor: 'Second factor',
  multi: 'Multi-purpose',
  single: 'Single-purpose',
  declines: 'Declined',
  asked: 'Asked to stop',
  count: 'Number',
  digest: 'Hash of the file',
  exportsBefore: 'Earlier exports',
  lateRows: 'Late entries',
  mode: 'Approval by',
  numbers: 'Statements',
  pardonedGuesses: 'Wrong PINs forgiven',
  previousSecretUntil: 'Old secret works until',
  expiries: 'Amounts',
  payer: 'Goes back to the float of',
  modeBefore: 'Approval by, so far',
  vouchersBefore: 'Vouchers, so far',
  secondFactor: 'With second factor',
};

/** States, kinds of bookings and other words; of one field as `kind.REDEEMED`. */
const words: Words = {
  ...declared.words,
  'check.network': 'Network',
  'recovery-code': 'Recovery code',
  'off sale': 'Not on sale',
  opening: 'Opening balance',
  oidc: 'Single sign-on',
  link: 'One-time link',
  funding: 'Money held',
  'voucher.block': 'Blocked',
  'voucher.unblock': 'Unblocked',
  'voucher.unlock-pin': 'PIN unlocked',
  'voucher.extend': 'Extended',
  'voucher.replace': 'Replaced',
  'sheets.order': 'Card ordered',
  'voucher.export': 'Card exported',
  'voucher.adjust': 'Adjusted',
  'cash-out': 'Cash-out',
  'voucher.cash-out': 'Paid out in cash',
  'redemption.correct': 'Redemption corrected',
  'redemption.give-up': 'Redemption given up',
  cohorts: 'By month of issue',
  expiryMonths: 'By month of expiry',
  later: 'later',
  'funding, as booked': 'Money held, as booked',
  bank: 'At the bank',
  stated: 'From the statement',
  GAP: 'Gap before',
  'GAP INCOMPLETE': 'Gap before, incomplete',
  expires: 'Expires in (days)',
  idle: 'Not used for (days)',
  months: 'By month of issue',
  'no treatment': 'No rule yet: see Books, Rules',
  prepared: 'For your tax adviser',
  'kind.closing': 'Closing balance',
};

/** The subjects of operations and of the audit. */
const nouns: Words = {
  keyring: 'Key ring',
  sheets: 'Printed sheets',
};

/** Operations: the text of their button, and a description if their summary is not enough. */
const actions: Words = {
  ...declared.actions,
  'account.locked': 'Lock after wrong attempts',
  'audit.broken': 'Chain broken',
  'batch.export': 'Export the codes',
  'keyring.drop': 'Drop a key',
  'keyring.retire': 'Retire a key',
  'operation.refused': 'Refused for lack of rights',
  'session.begin': 'Sign in',
  'session.refused': 'Sign-in refused',
  'session.step-up': 'Confirm by second factor',
  'session.step-up-refused': 'Second factor refused',
  'session.end': 'Sign out',
  'token.refused': 'Token refused',
  'user.add-passkey': 'Add a passkey',
  'user.bind-oidc': 'Connect single sign-on',
  'user.change-password': 'Change the password',
  'user.enroll': 'Set up the account',
  'user.remove-passkey': 'Remove a passkey',
  'user.renew-recovery-codes': 'Make new recovery codes',
  'voucher.export': 'Export codes',
};

/** The checks of the reconciliation. */
const checks: Words = {
  buckets: 'Parts of vouchers',
  deliveries: 'Deliveries of webhooks',
  ages: 'Ages of vouchers',
  days: 'Days of the books',
  'float-balances': 'Balances of floats',
  'journal-entries': 'Entries of the journal',
  'journal-ids': 'Numbers of the entries',
  opening: 'Opening balances',
  'redemption-updates': 'Corrected redemptions',
  'replacement-entries': 'Replacements',
  reserves: 'Reserves of batches',
  slices: 'Every entry is in a day',
  'set-by-operators': 'What operators set',
  'top-ups': 'Top-ups',
  totals: 'Debits equal credits',
  'update-entries': 'Entries of corrections',
  'voucher-totals': 'Balances of vouchers',
};

export const labels = { fields, words, nouns, actions, checks };

/** Every language has the same kinds of labels. */
export type Labels = typeof labels;
