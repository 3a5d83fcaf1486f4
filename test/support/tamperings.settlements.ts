import type { Tampering } from './tamperings.books.ts';

/** Changes that a superuser could make to commission and settlements, and the checks that report them. */

export const TAMPERINGS_OF_SETTLEMENTS: readonly Tampering[] = [
  [
    'the commission of a day',
    'update settlement_fees set fee_minor = fee_minor + 1',
    { checks: ['commission is what the terms of the day make of it'], full: ['commissions'] },
  ],
  [
    'the terms of commission',
    'update settlement_terms set commission_ppm = commission_ppm + 10000',
    {
      checks: ['commission is what the terms of the day make of it'],
      full: ['commissions', 'set-by-operators'],
      since: ['set-by-operators'],
    },
  ],
  [
    'a settlement with another number',
    "update settlements set number = 2, year = 2026 where state <> 'DRAFT'",
    { full: ['settlements', 'set-by-operators'], since: ['set-by-operators'] },
  ],
  [
    'a settlement of other days',
    "update settlements set first_day = first_day - 1 where state <> 'DRAFT'",
    { full: ['settlements', 'set-by-operators'], since: ['set-by-operators'] },
  ],
  [
    'a settlement with another document',
    "update settlements set csv = csv || 'x' where state <> 'DRAFT'",
    { full: ['settlements'] },
  ],
  [
    'a settlement with another document and its hash',
    `update settlements set csv = csv || 'x', content_hash = sha256(convert_to(csv || 'x', 'UTF8'))
      where state <> 'DRAFT'`,
    { full: ['settlements', 'set-by-operators'], since: ['set-by-operators'] },
  ],
  [
    'a settlement with another PDF',
    "update settlements set pdf = pdf || '\\x00' where state <> 'DRAFT'",
    { full: ['settlements'] },
  ],
  [
    'a settlement with the root of other rows',
    "update settlements set root = sha256('') where state <> 'DRAFT'",
    {
      verify: ['settlement 06'],
      full: ['settlements', 'set-by-operators'],
      since: ['set-by-operators'],
    },
  ],
  [
    'the amount of a settlement that is not paid yet',
    `delete from settlement_payouts; delete from journal where kind = 'PAYOUT';
      update settlements set state = 'APPROVED', payable_minor = payable_minor + 1 where state = 'PAID'`,
    {
      verify: ['removed 07'],
      full: ['slices', 'references', 'settlements', 'set-by-operators'],
      since: ['set-by-operators'],
    },
  ],
  [
    'the day on which a settlement is due',
    "update settlements set due_on = due_on + 1 where state <> 'DRAFT'",
    { full: ['settlements', 'set-by-operators'], since: ['set-by-operators'] },
  ],
  [
    'the next number of a settlement',
    'update settlement_numbers set last_number = last_number + 1',
    { full: ['settlements'] },
  ],
  [
    'a line of a settlement',
    "update settlement_lines set amount_minor = amount_minor + 1 where kind = 'REDEMPTION'",
    { full: ['settlements', 'set-by-operators'], since: ['set-by-operators'] },
  ],
  [
    'the opening of a settlement',
    'update settlements set carried_minor = 1',
    { full: ['settlements', 'set-by-operators'], since: ['set-by-operators'] },
  ],
  [
    'a payout of another amount',
    'update settlement_payouts set amount_minor = amount_minor + 1',
    { full: ['payouts', 'set-by-operators'], since: ['set-by-operators'] },
  ],
  [
    'a paid settlement recorded as returned',
    "update settlements set state = 'RETURNED' where state = 'PAID'",
    { full: ['payouts', 'set-by-operators'], since: ['set-by-operators'] },
  ],
];
