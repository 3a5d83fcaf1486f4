import { raw, type Sql, sql } from '../db/sql.ts';
import { KeyOf } from '../schema.ts';

/**
 * The kinds of accounts and of movements, once: what the documents, the reports, the bank and the console say
 * about a kind follows from its row here. A test compares the rows with the database, which decides what may
 * be booked (sql/001-core.sql).
 */

type Account = {
  /** The name of all accounts of the kind. */
  readonly label: string;
  readonly holds: string;
  /** Whom the money belongs to: others, or the operator. Funding is the money that is behind both. */
  readonly of: 'others' | 'operator' | 'funding';
};

/** The kinds of accounts, in the order in which reports print them. */
export const ACCOUNTS = {
  FLOAT: { label: 'Floats', holds: 'prepayments of merchants', of: 'others' },
  RESERVE: {
    label: 'Reserves',
    holds: 'the price of vouchers that are paid for, and not activated yet',
    of: 'others',
  },
  TRANSIT: {
    label: 'In transit',
    holds: 'money that has left a float for a voucher on another shard',
    of: 'others',
  },
  VOUCHER: { label: 'Vouchers', holds: 'the balances of vouchers', of: 'others' },
  SETTLEMENT: { label: 'Settlements', holds: 'debts to merchants for redemptions', of: 'others' },
  UNCLAIMED: { label: 'Unclaimed', holds: 'expired money that belongs to a state', of: 'others' },
  VAT: { label: 'VAT', holds: 'tax on commission', of: 'others' },
  BREAKAGE: { label: 'Breakage', holds: "the operator's own money from expired vouchers", of: 'operator' },
  FEES: { label: 'Fees', holds: "the operator's own money from commission", of: 'operator' },
  GOODWILL: { label: 'Goodwill', holds: 'gifts of the operator, as a negative number', of: 'operator' },
  FUNDING: {
    label: 'Money held',
    holds: 'money received and still there, as a negative number',
    of: 'funding',
  },
} as const satisfies Readonly<Record<string, Account>>;

export type AccountKind = keyof typeof ACCOUNTS;

export const ACCOUNT_KINDS = Object.keys(ACCOUNTS) as AccountKind[];

/** Returns the kinds of accounts whose money belongs to others, or to the operator. */
export const accountsOf = (owner: 'others' | 'operator') =>
  ACCOUNT_KINDS.filter((kind) => ACCOUNTS[kind].of === owner);

type Movement = {
  readonly label: string;
  /** What it is: a phrase. */
  readonly says: string;
  /** From which kind of account (debit) to which (credit). */
  readonly moves: readonly `${AccountKind} ${AccountKind}`[];
  /** The kind that it takes back, wholly or in part. */
  readonly reverses?: string;
  /** The operation whose reference it has. */
  readonly operation?: string;
  /** The step of a settlement to which it belongs; left out: the other movements. */
  readonly step?: 'REDEEMED' | 'REVERSED' | 'COMMISSION' | 'COMMISSION_VAT' | 'PAID_EARLIER';
};

/** The kinds of movements, in the order of the type of the database. */
export const MOVEMENTS = {
  TOP_UP: { label: 'Top-up', says: 'a merchant prepays', moves: ['FUNDING FLOAT'], operation: 'top-up' },
  RESERVATION: {
    label: 'Order',
    says: 'a batch is accepted, or an inactive voucher is extended after its price was released',
    moves: ['FLOAT RESERVE'],
  },
  HOLD: { label: 'Hold', says: 'before an activation on another shard', moves: ['FLOAT TRANSIT'] },
  HOLD_RELEASE: {
    label: 'Hold released',
    says: 'that activation was declined',
    moves: ['TRANSIT FLOAT'],
    reverses: 'HOLD',
  },
  ACTIVATION: {
    label: 'Activation',
    says: 'a voucher gets its value',
    moves: ['RESERVE VOUCHER', 'FLOAT VOUCHER', 'TRANSIT VOUCHER'],
    operation: 'activate',
  },
  REDEMPTION: {
    label: 'Redemption',
    says: 'a merchant accepts a voucher',
    moves: ['VOUCHER SETTLEMENT'],
    operation: 'redeem',
    step: 'REDEEMED',
  },
  REDEMPTION_REVERSAL: {
    label: 'Reversal',
    says: 'a redemption is updated',
    moves: ['SETTLEMENT VOUCHER'],
    reverses: 'REDEMPTION',
    step: 'REVERSED',
  },
  REPLACEMENT: {
    label: 'Replacement',
    says: 'to the voucher that replaces another',
    moves: ['VOUCHER VOUCHER'],
  },
  VOID: { label: 'Voided', says: 'a batch is canceled', moves: ['VOUCHER RESERVE'], reverses: 'ACTIVATION' },
  RELEASE: {
    label: 'Release',
    says: 'of a canceled batch, or of vouchers that expire or are canceled before their activation',
    moves: ['RESERVE FLOAT'],
    reverses: 'RESERVATION',
  },
  EXPIRY: {
    label: 'Expiry',
    says: 'a voucher expires: its expiry policy decides who gets the rest',
    moves: ['VOUCHER BREAKAGE', 'VOUCHER FLOAT', 'VOUCHER UNCLAIMED'],
  },
  REINSTATEMENT: {
    label: 'Reinstatement',
    says: 'an expired voucher gets its balance back',
    moves: ['BREAKAGE VOUCHER', 'FLOAT VOUCHER', 'UNCLAIMED VOUCHER'],
    reverses: 'EXPIRY',
  },
  FLOAT_REFUND: {
    label: 'Float refund',
    says: 'an unused prepayment is paid back',
    moves: ['FLOAT FUNDING'],
    operation: 'float-refund',
  },
  FLOAT_CORRECTION: {
    label: 'Float correction',
    says: 'a top-up was wrong',
    moves: ['FLOAT FUNDING'],
    reverses: 'TOP_UP',
    operation: 'float-correct',
  },
  FEE: {
    label: 'Commission',
    says: 'commission on the redemptions of a day',
    moves: ['SETTLEMENT FEES'],
    step: 'COMMISSION',
  },
  FEE_REVERSAL: {
    label: 'Commission reversed',
    says: 'the reversals of a day exceed its redemptions',
    moves: ['FEES SETTLEMENT'],
    reverses: 'FEE',
    step: 'COMMISSION',
  },
  FEE_VAT: {
    label: 'VAT on commission',
    says: 'the tax on it',
    moves: ['SETTLEMENT VAT'],
    step: 'COMMISSION_VAT',
  },
  FEE_VAT_REVERSAL: {
    label: 'VAT reversed',
    says: 'the tax on commission that is returned',
    moves: ['VAT SETTLEMENT'],
    reverses: 'FEE_VAT',
    step: 'COMMISSION_VAT',
  },
  PAYOUT: {
    label: 'Payout',
    says: 'a settlement is paid',
    moves: ['SETTLEMENT FUNDING'],
    operation: 'payout',
    step: 'PAID_EARLIER',
  },
  PAYOUT_RETURN: {
    label: 'Payout returned',
    says: 'the bank returned a payout',
    moves: ['FUNDING SETTLEMENT'],
    reverses: 'PAYOUT',
    operation: 'payout-return',
    step: 'PAID_EARLIER',
  },
  ADJUSTMENT: {
    label: 'Adjustment',
    says: 'the operator corrects the balance of a voucher',
    moves: ['GOODWILL VOUCHER', 'VOUCHER GOODWILL'],
    operation: 'adjust',
  },
  CASH_OUT: {
    label: 'Cash-out',
    says: 'a balance is paid in cash, by a merchant or by the operator',
    moves: ['VOUCHER SETTLEMENT', 'VOUCHER FUNDING'],
    operation: 'cash-out',
  },
  ESCHEAT: {
    label: 'Paid to a state',
    says: 'unclaimed money is paid to a state',
    moves: ['UNCLAIMED FUNDING', 'VOUCHER FUNDING'],
    operation: 'escheat',
  },
  OPENING: {
    label: 'Opening balance',
    says: 'the balance that another system leaves behind',
    moves: [
      ...(['FUNDING SETTLEMENT', 'SETTLEMENT FUNDING', 'FUNDING FEES', 'FEES FUNDING'] as const),
      ...(['FUNDING BREAKAGE', 'BREAKAGE FUNDING', 'FUNDING VAT', 'VAT FUNDING'] as const),
    ],
    operation: 'opening',
  },
  OWN_TRANSFER: {
    label: 'Own transfer',
    says: 'the operator takes out what it earned, pays tax, or pays in for goodwill',
    moves: ['FEES FUNDING', 'BREAKAGE FUNDING', 'VAT FUNDING', 'FUNDING GOODWILL'],
    operation: 'own-transfer',
  },
  IMPORT: {
    label: 'Import',
    says: 'a voucher is taken over from another system',
    moves: ['FUNDING VOUCHER', 'FLOAT VOUCHER'],
  },
  CANCELLATION: {
    label: 'Cancellation',
    says: 'a single voucher is canceled, or its activation is voided',
    moves: ['VOUCHER FLOAT'],
    reverses: 'ACTIVATION',
  },
  REFUND: {
    label: 'Refund',
    says: 'a merchant gives back a part of a redemption, perhaps several times',
    moves: ['SETTLEMENT VOUCHER'],
    reverses: 'REDEMPTION',
    operation: 'refund',
    step: 'REVERSED',
  },
} as const satisfies Readonly<Record<string, Movement>>;

export type MovementKind = keyof typeof MOVEMENTS;

/** The operations whose references movements have. */
export type MovementOperation = Extract<
  (typeof MOVEMENTS)[MovementKind],
  { readonly operation: string }
>['operation'];

export const MOVEMENT_KINDS = Object.keys(MOVEMENTS) as MovementKind[];

/** Returns what is known about a kind that the database returned. */
export const movementOf = (kind: string) =>
  (MOVEMENTS as Readonly<Record<string, Movement>>)[kind] as Movement;

/** Account numbers from here on are reserves of batches: this number plus the id of the batch. */
export const FIRST_RESERVE = sql`5000000000`;
/** Account numbers from here on are serial numbers of vouchers. */
export const FIRST_VOUCHER = sql`10000000000`;

/** Returns the kind of an account by its number. @param other the kind of one with a row in `accounts` */
export const kindOf = (number: Sql, other: Sql) => sql`case when ${number} >= ${FIRST_VOUCHER} then 'VOUCHER'
        when ${number} >= ${FIRST_RESERVE} then 'RESERVE' else ${other} end`;

const kindsWhere = (matches: (row: Movement) => boolean) =>
  MOVEMENT_KINDS.filter((kind) => matches(movementOf(kind)));

/** Returns the kinds that can move a kind of account. */
export const kindsOn = (account: AccountKind) =>
  kindsWhere(({ moves }) => moves.some((each) => each.split(' ').includes(account)));

/** Returns the kinds that take back a kind, wholly or in part. */
export const reversalsOf = (kind: MovementKind) => kindsWhere(({ reverses }) => reverses === kind);

/** Returns a kind, and those that take it back. */
export const withReversals = (kind: MovementKind) => [kind, ...reversalsOf(kind)];

/** The kinds that are transactions in the API of merchants. */
export const TRANSACTION_KINDS = ['ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL'] as const;

/** The commission that the close of a day books, and the VAT on it. */
export const COMMISSION = kindsWhere(({ step }) => step === 'COMMISSION' || step === 'COMMISSION_VAT');

/** Returns kinds as a list of a statement, such as `('FEE', 'FEE_REVERSAL')`. */
export const listOf = (kinds: readonly MovementKind[]): Sql =>
  raw(`(${kinds.map((kind) => `'${kind}'`).join(', ')})`);

/** The kind of a movement, and the kind of an account, in an answer. */
export const MovementWord = KeyOf(MOVEMENTS);
export const AccountWord = KeyOf(ACCOUNTS);
