/** Changes that a superuser could make to closed days, and the checks that report them. */

type Named = Partial<Record<'identities' | 'verify' | 'checks' | 'full' | 'since', readonly string[]>>;
export type Tampering = readonly [what: string, statement: string, named: Named];

const LAST = "day >= '2026-03-06'";
const OPEN = "occurred_at >= '2026-03-08'";
const BAR = "day = '2026-03-06' and kind = 'REDEMPTION'";

const FLOAT_OF_EVENING: Named = {
  identities: [
    'R1 sums to zero',
    'R1 opens with the closing of the day before',
    'R3 owed and own are the money',
    'R12 is what the accounts moved',
  ],
  verify: ['totals 06', 'totals 07'],
  checks: ['account kinds sum to zero', 'floats are what is stored'],
  since: ['opening', 'float-balances'],
};

export const TAMPERINGS_OF_BOOKS: readonly Tampering[] = [
  [
    'a redemption of another amount',
    "update journal set amount_minor = amount_minor + 1 where reference = 'bar 1'",
    { verify: ['altered 06'], full: ['slices', 'voucher-balances', 'references', 'totals'] },
  ],
  [
    'a redemption that names another API key',
    "update journal set key_id = 'key_bDxTqHDikohFuaAj' where reference = 'bar 1'",
    { verify: ['altered 06'] },
  ],
  [
    'a missing redemption',
    "delete from journal where reference = 'bar 1'",
    {
      verify: ['removed 06'],
      full: ['slices', 'voucher-balances', 'uses', 'references', 'totals'],
      since: ['uses'],
    },
  ],
  [
    'an added redemption',
    `insert into journal select (j).* from (select jsonb_populate_record(j, jsonb_build_object('id', id_at(
      gen_random_uuid(), occurred_at), 'reference', 'bar 3')) as j
      from journal j where reference = 'bar 1') r`,
    { verify: ['added 06'], full: ['slices', 'voucher-balances', 'uses', 'references', 'totals'] },
  ],
  [
    'a redemption of another amount after the last closing',
    "update journal set amount_minor = amount_minor + 1 where reference = 'open 1'",
    {
      full: ['voucher-balances', 'ages', 'redemption-updates', 'references', 'totals'],
      since: ['voucher-totals', 'voucher-balances', 'redemption-updates', 'references', 'totals'],
    },
  ],
  [
    'a redemption in another slice',
    `update journal set occurred_at = occurred_at + interval '15 minutes', id = id_at(id,
      occurred_at + interval '15 minutes') where reference = 'bar 1'`,
    { verify: ['removed 06', 'added 06'], full: ['slices', 'uses', 'references'], since: ['uses'] },
  ],
  [
    'a redemption under the id of another hour',
    `alter table journal drop constraint journal_id_near_time;
      update journal set id = id_at(id, occurred_at - interval '2 hours') where reference = 'bar 1'`,
    { verify: ['removed 06'], full: ['slices', 'uses', 'references'], since: ['journal-ids', 'uses'] },
  ],
  [
    'a redemption after the last closing, under the id of the day before',
    `alter table journal drop constraint journal_id_near_time;
      update journal set id = id_at(id, occurred_at - interval '1 day') where reference = 'open 3'`,
    {
      full: ['slices', 'ages', 'uses', 'references'],
      since: ['voucher-totals', 'journal-ids', 'voucher-balances', 'uses', 'references', 'totals'],
    },
  ],
  [
    'a redemption after the last closing, stamped in the day before',
    `alter table journal drop constraint journal_id_near_time;
      update journal set occurred_at = occurred_at - interval '1 day' where reference = 'open 3'`,
    { full: ['slices', 'ages', 'uses'], since: ['voucher-totals', 'journal-ids', 'slices', 'totals'] },
  ],
  [
    'a redemption of next year',
    `update journal set occurred_at = occurred_at + interval '1 year', id = id_at(id,
      occurred_at + interval '1 year') where reference = 'open 3'`,
    {
      full: ['slices', 'uses', 'references'],
      since: ['voucher-totals', 'slices', 'voucher-balances', 'uses', 'references'],
    },
  ],
  [
    'a slice before the first day',
    `insert into book_slices select starts_at - interval '1 year', currency, kind, debit_kind, credit_kind,
      merchant_id, issuer_id, product_id, rows, amount_minor from book_slices limit 1`,
    {
      identities: [
        'R1 opens with the closing of the day before',
        'R3 ends with R1',
        'R6 is the stored float',
      ],
      full: ['slices'],
    },
  ],
  [
    'the voucher balance of an evening',
    `update book_balances set balance_minor = balance_minor + 1
      where ${LAST} and account_kind = 'VOUCHER'
        and product_id = (select min(product_id) from book_balances where account_kind = 'VOUCHER')`,
    {
      identities: [
        'R1 sums to zero',
        'R1 opens with the closing of the day before',
        'R3 owed and own are the money',
        'R3 ends with R1',
        'R12 is what the accounts moved',
        'R2 is what vouchers held',
      ],
      verify: ['totals 06', 'totals 07'],
      checks: ['account kinds sum to zero', 'liability is what the vouchers hold'],
      since: ['opening', 'voucher-totals'],
    },
  ],
  [
    'the float balance of an evening',
    `update book_balances set balance_minor = balance_minor + 1 where ${LAST} and account_kind = 'FLOAT'`,
    FLOAT_OF_EVENING,
  ],
  [
    'the redeemed amount of a day',
    `update book_movements set amount_minor = amount_minor + 1 where ${BAR}`,
    {
      identities: [
        'R1 opens with the closing of the day before',
        'R3 ends with R1',
        'R12 is what the accounts moved',
        'R2 is what vouchers held',
        'R2 months are R2',
        'R4 is R2',
        'R5 cohorts are R2',
        'R7 is what the accounts held',
      ],
      verify: ['totals 06'],
      checks: ['cohorts are what moved the vouchers', 'commission is what the terms of the day make of it'],
      full: ['commissions', 'settlements'],
    },
  ],
  [
    'the merchant of the redemptions of a day',
    `update book_movements set merchant_id = merchant_id - 1 where ${BAR}`,
    {
      identities: ['R7 is what the accounts held', 'R8 is R7'],
      verify: ['totals 06'],
      checks: ['commission is what the terms of the day make of it'],
      full: ['commissions', 'settlements'],
    },
  ],
  [
    'the issuer of the vouchers redeemed on a day',
    `update book_movements set issuer_id = issuer_id - 1 where ${BAR}`,
    {
      identities: ['R2 is what vouchers held'],
      verify: ['totals 06'],
      checks: ['cohorts are what moved the vouchers'],
    },
  ],
  [
    'a movement of an unknown kind',
    `update book_movements set credit_kind = 'FLOAT' where ${BAR}`,
    {
      identities: [
        'R1 opens with the closing of the day before',
        'R12 is what the accounts moved',
        'R7 is what the accounts held',
        'R9 columns are R7',
      ],
      verify: ['totals 06'],
      checks: ['accounts are known'],
      full: ['settlements'],
    },
  ],
  [
    'the age of vouchers',
    `update book_aging set amount_minor = amount_minor + 1 where ${LAST} and basis = 'expires'`,
    {
      identities: ['R4 is R2'],
      verify: ['totals 06', 'totals 07'],
      checks: ['liability is what the vouchers hold'],
    },
  ],
  [
    'the ages that the next close moves on',
    "update book_ages set amount_minor = amount_minor + 1 where basis = 'expires'",
    { verify: ['totals 07'], full: ['ages'] },
  ],
  [
    'the expiry of a voucher',
    `update vouchers set expires_at = expires_at - interval '1 day'
      where serial_number = (select min(serial_number) from vouchers where balance_minor > 0)`,
    { full: ['ages', 'set-by-operators'], since: ['set-by-operators'] },
  ],
  [
    'the end of a closed day',
    `update book_days set ends_at = ends_at + interval '1 hour' where day = '2026-03-06';
      update book_days set starts_at = starts_at + interval '1 hour' where day = '2026-03-07'`,
    { verify: ['totals 06', 'totals 07'], full: ['days'], since: ['days'] },
  ],
  [
    'the end of the open day',
    "update book_days set ends_at = ends_at + interval '1 hour' where day = '2026-03-08'",
    { full: ['days'], since: ['days'] },
  ],
  [
    'the month in which vouchers were issued',
    `update book_cohorts set amount_minor = amount_minor + 1 where ${BAR}`,
    {
      identities: ['R2 months are R2', 'R5 cohorts are R2'],
      verify: ['totals 06'],
      checks: ['cohorts are what moved the vouchers'],
    },
  ],
  [
    'a slice',
    `update book_slices set rows = rows + 1 where kind = 'REDEMPTION'
      and starts_at >= '2026-03-06' and starts_at < '2026-03-07'`,
    {
      verify: ['aggregate 06', 'totals 06'],
      checks: ['every row of a slice is summed up'],
      full: ['slices'],
    },
  ],
  [
    'a seal',
    "update book_seals set root = sha256(root) where starts_at >= '2026-03-06' and starts_at < '2026-03-07'",
    { verify: ['seal 06'] },
  ],
  [
    'a reversal of an earlier day',
    'update book_reversals set amount_minor = amount_minor + 1',
    { verify: ['aggregate 03', 'totals 03', 'aggregate 07', 'totals 07'], full: ['commissions'] },
  ],
  [
    'a closing',
    "update book_closings set rows = rows + 1 where day = '2026-03-06'",
    { verify: ['closing 06', 'seal 06'] },
  ],
  [
    'the balance of a float',
    `update floats set balance_minor = balance_minor + 1
      where merchant_id = (select min(merchant_id) from floats)`,
    {
      identities: ['R6 is the stored float'],
      checks: ['floats are what is stored'],
      full: ['float-balances', 'totals'],
      since: ['float-balances', 'totals'],
    },
  ],
  [
    'a missing float',
    'delete from floats where merchant_id = (select min(merchant_id) from floats)',
    { checks: ['floats are what is stored'], full: ['totals'], since: ['totals'] },
  ],
  [
    'a missing float balance of an evening',
    `delete from book_balances where ${LAST} and account_kind = 'FLOAT'`,
    FLOAT_OF_EVENING,
  ],
  [
    'the balance of a voucher',
    `update vouchers set balance_minor = balance_minor + 1
      where serial_number = (select min(serial_number) from vouchers where balance_minor > 0)`,
    { full: ['voucher-balances', 'ages', 'totals'], since: ['voucher-totals', 'totals'] },
  ],
  [
    'the account from which vouchers expired',
    "update book_movements set debit_kind = 'RESERVE' where kind = 'EXPIRY'",
    {
      identities: [
        'R1 opens with the closing of the day before',
        'R3 ends with R1',
        'R12 is what the accounts moved',
        'R2 is what vouchers held',
        'R2 months are R2',
        'R4 is R2',
        'R5 expired is R2',
        'R5 cohorts are R2',
      ],
      verify: ['totals 04'],
    },
  ],
  [
    'the account from which vouchers were redeemed',
    `update book_movements set debit_kind = 'RESERVE' where ${BAR}`,
    {
      identities: [
        'R1 opens with the closing of the day before',
        'R3 ends with R1',
        'R12 is what the accounts moved',
        'R2 is what vouchers held',
        'R2 months are R2',
        'R4 is R2',
        'R5 cohorts are R2',
        'R9 rows are R2',
      ],
      verify: ['totals 06'],
      checks: ['accounts are known', 'cohorts are what moved the vouchers'],
    },
  ],
  [
    'a missing activation after the last closing',
    `delete from journal where kind = 'ACTIVATION' and ${OPEN}`,
    {
      full: ['voucher-balances', 'activations', 'reserve-shares', 'ages', 'totals'],
      since: ['voucher-totals', 'activations', 'totals'],
    },
  ],
  [
    'a missing reservation after the last closing',
    `delete from journal where kind = 'RESERVATION' and ${OPEN}`,
    {
      checks: ['floats are what is stored'],
      full: ['float-balances', 'reserves', 'totals'],
      since: ['float-balances', 'reserves', 'totals'],
    },
  ],
  [
    'a redemption by another merchant after the last closing',
    "update journal set merchant_id = merchant_id - 1 where reference = 'open 1'",
    {
      full: ['journal-entries', 'redemption-updates', 'references'],
      since: ['journal-entries', 'redemption-updates', 'references'],
    },
  ],
  [
    'a top-up after the last closing that is not in the audit',
    `update audit set action = 'float.other'
      where sequence = (select max(sequence) from audit where action = 'float.top-up')`,
    { verify: ['audit 07'], full: ['top-ups'], since: ['top-ups'] },
  ],
  [
    'an update of another amount after the last closing',
    "update redemption_updates set new_minor = new_minor + 1 where updated_at >= '2026-03-08'",
    { full: ['redemption-updates'], since: ['redemption-updates'] },
  ],
  [
    'a batch without its vouchers after the last closing',
    "update vouchers set batch_id = 1 where activated_at >= '2026-03-08'",
    {
      full: ['journal-entries', 'reserve-shares', 'batches', 'vouchers-as-made'],
      since: ['voucher-totals', 'journal-entries', 'batches'],
    },
  ],
];
