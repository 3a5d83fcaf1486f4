import Type, { type Static } from 'typebox';
import { changeIn } from '../agreement.ts';
import { type AuditEntry, listAudit } from '../audit/entries.ts';
import { findProgress } from '../batches/batch.ts';
import type { Service } from '../context.ts';
import { maskCode } from '../ledger/transactions.ts';
import { toEnd } from '../ledger/zone.ts';
import { merchantNamed } from '../merchants/merchants.ts';
import { type Money, toNumber } from '../money.ts';
import {
  ABOVE_LIMIT,
  alone,
  type Caller,
  changing,
  MOVES_MONEY,
  reading,
  tableOf,
  twoPeople,
} from '../operation.ts';
import { CARE, MANAGE, MONEY, SEE_VOUCHERS } from '../principal.ts';
import {
  End,
  Input,
  Major,
  MerchantId,
  Nullable,
  NullableText,
  NullableTime,
  Reason,
  SerialNumber,
  Text,
  Time,
  Word,
} from '../schema.ts';
import { declinesOf } from '../vouchers/declines.ts';
import {
  blockVoucher,
  cancelVoucher,
  extendVoucher,
  ofVoucher,
  replaceVoucher,
  showVoucher,
  unblockVoucher,
  unlockPin,
  VOUCHER_STATES,
  type VoucherInfo,
} from '../vouchers/operate.ts';
import { listEscheats } from '../vouchers/queries.ts';

const TimelineEntry = Type.Object({
  at: Time,
  kind: Word(['money', 'change', 'decline'] as const, {
    description: '`money`: a movement. `change`: by an operator. `decline`: a request that was refused.',
  }),
  what: Type.String({
    description: 'The kind of movement, the action of the operator, or the operation that was declined.',
  }),
  amount: Nullable(Major(), {
    description:
      'For a movement, the change of the balance: negative if money leaves the voucher; null for the price of a voucher that is not active.',
  }),
  code: Nullable(Type.String(), {
    description: 'The status code of a decline: 55 is a wrong PIN, 75 a locked one.',
  }),
  merchantId: Nullable(MerchantId),
  actor: Nullable(Type.String(), { description: 'The operator of a change, or of a movement.' }),
  approvedBy: Nullable(Type.String(), { description: 'Who approved what the operator proposed.' }),
  reason: NullableText,
  reference: NullableText,
  transactionId: NullableText,
});

const VoucherSchema = Type.Object({
  serialNumber: SerialNumber,
  voucherCode: Type.String({ description: 'The code, masked.', examples: ['4829****7641'] }),
  state: Word(VOUCHER_STATES),
  merchantId: MerchantId,
  payerId: Nullable(MerchantId, {
    description:
      'The merchant whose float paid for its value, and gets the rest if it is canceled; null: none.',
  }),
  batch: Type.String({ description: 'The transaction id of its batch.' }),
  batchReference: Text,
  product: Text,
  currency: Text,
  balance: Major(),
  value: Nullable(Major(), { description: 'The value at activation; null before it.' }),
  reserved: Nullable(Major(), {
    description: 'The value that it gets at its activation; null afterwards, and once it has expired.',
  }),
  activatedAt: NullableTime,
  expiresAt: Time,
  blockedAt: NullableTime,
  wrongPins: Type.Integer({ description: 'Wrong PINs in a row.' }),
  pinLocked: Type.Boolean(),
  pinLockedUntil: Nullable(Time, {
    description: 'Null if there is no lock, or no time ends it.',
  }),
  replacedBy: Nullable(SerialNumber),
  timeline: Type.Array(TimelineEntry, {
    description: 'Movements, changes by operators and declines, newest first: at most 100 of each.',
  }),
});

export type Voucher = Static<typeof VoucherSchema>;

/** Returns a voucher as every door shows it. */
async function voucherJson({ service }: Caller, serialNumber: bigint): Promise<Voucher> {
  const voucher = await showVoucher(service, serialNumber);
  const isWaiting = voucher.activatedAt === null && voucher.payerId !== null && voucher.state !== 'REPLACED';
  const batch = isWaiting ? (await findProgress(service.db, voucher.batch))?.batch : undefined;
  return { ...toJson(voucher, batch?.value ?? null), timeline: await timelineOf(service, voucher) };
}

const TIMELINE_MAX = 100;
const EMPTY = {
  amount: null,
  code: null,
  merchantId: null,
  actor: null,
  approvedBy: null,
  reason: null,
  reference: null,
  transactionId: null,
};

/** Returns who made a change, and who approved it. */
function peopleOf(change: Pick<AuditEntry, 'actor' | 'after'> | undefined) {
  const approvedBy = change?.after?.['approvedBy'];
  return {
    actor: change?.actor ?? null,
    approvedBy: typeof approvedBy === 'string' ? approvedBy : null,
  };
}

/** Lists the events of a voucher, newest first. The lock of a PIN is derived from the declines. */
async function timelineOf({ readDb }: Service, voucher: VoucherInfo): Promise<Voucher['timeline']> {
  const { serialNumber } = voucher;
  const [changes, declines] = await Promise.all([
    listAudit(readDb, `voucher ${serialNumber}`, TIMELINE_MAX),
    declinesOf(readDb, serialNumber, TIMELINE_MAX),
  ]);
  type Escheat = { readonly escheat_id: string; readonly at: Date };
  const escheats = await readDb.query<Escheat>(listEscheats(serialNumber, TIMELINE_MAX));
  // A movement that an operator made is one event, with its author.
  const author = new Map(changes.map((each) => [transactionOf(each), each]));
  const isMoved = new Set<unknown>(voucher.entries.map(({ transactionId }) => transactionId));
  const entries: Voucher['timeline'] = [
    ...voucher.entries.map((each) => ({
      ...EMPTY,
      at: each.timestamp,
      kind: 'money' as const,
      what: each.kind,
      amount: each.change && toNumber(each.change),
      ...peopleOf(author.get(each.transactionId)),
      reason: author.get(each.transactionId)?.reason ?? null,
      merchantId: idOf(each.merchantId),
      reference: each.reference || null,
      transactionId: each.transactionId,
    })),
    ...changes
      .filter((each) => !isMoved.has(transactionOf(each)))
      .map((each) => ({
        ...EMPTY,
        at: each.occurredAt,
        kind: 'change' as const,
        what: each.action,
        ...peopleOf(each),
        reason: each.reason,
      })),
    // Its expired money was paid to a state, with that of others.
    ...escheats.map(({ escheat_id: transactionId, at }) => ({
      ...EMPTY,
      at,
      kind: 'change' as const,
      what: 'books.escheat',
      transactionId,
    })),
    ...declines.map(({ at, operation, code, amount, merchantId, reference }) => ({
      ...EMPTY,
      at,
      kind: 'decline' as const,
      what: operation,
      code,
      amount,
      merchantId: idOf(merchantId),
      reference,
    })),
  ];
  return entries.sort((one, other) => other.at.getTime() - one.at.getTime());
}

/** Returns the movement that a change in the audit made. */
const transactionOf = ({ after }: { readonly after: unknown }) =>
  (after as { readonly transactionId?: string } | null)?.transactionId;

const idOf = (id: number | bigint | null) => (id === null ? null : String(id));

function toJson(voucher: VoucherInfo, reserved: Money | null): Omit<Voucher, 'timeline'> {
  const { code, value, balance, entries: _entries, pinLocked, ...rest } = voucher;
  return {
    ...rest,
    serialNumber: String(voucher.serialNumber),
    replacedBy: idOf(voucher.replacedBy),
    payerId: idOf(voucher.payerId),
    voucherCode: maskCode(code),
    merchantId: String(voucher.merchantId),
    balance: toNumber(balance),
    value: value && toNumber(value),
    reserved: reserved && toNumber(reserved),
    pinLocked: pinLocked !== 'no',
    pinLockedUntil: pinLocked instanceof Date ? pinLocked : null,
  };
}

const show = reading({
  name: 'voucher.show',
  summary: 'Get a voucher and its history',
  method: 'GET',
  path: '/vouchers/:serialNumber',
  command: 'voucher show',
  input: Input({ serialNumber: SerialNumber }),
  output: VoucherSchema,
  roles: SEE_VOUCHERS,
  run: (caller, { serialNumber }) => voucherJson(caller, BigInt(serialNumber)),
});

const CHANGES = {
  block: ['Refuse to redeem or activate a voucher (43)', blockVoucher],
  unblock: ['End the block of a voucher', unblockVoucher],
  'unlock-pin': ['Forget the wrong PINs of a voucher, and end the lock that they caused', unlockPin],
} as const;

function changeOne(verb: keyof typeof CHANGES) {
  const [summary, run] = CHANGES[verb];
  return changing({
    name: `voucher.${verb}`,
    summary,
    method: 'POST',
    path: `/vouchers/:serialNumber/${verb}`,
    command: `voucher ${verb}`,
    input: Input({ serialNumber: SerialNumber, reason: Reason }),
    output: VoucherSchema,
    roles: CARE,
    approval: alone('It can be undone, and moves no money.'),
    async run(caller, { serialNumber }) {
      await run(caller, BigInt(serialNumber));
      return voucherJson(caller, BigInt(serialNumber));
    },
  });
}

const extend = changing({
  name: 'voucher.extend',
  summary: 'Extend the validity of a voucher, even if it has expired',
  method: 'POST',
  path: '/vouchers/:serialNumber/extend',
  command: 'voucher extend',
  input: Input({ serialNumber: SerialNumber, expiry: End('When it expires from now on.'), reason: Reason }),
  output: VoucherSchema,
  roles: CARE,
  approval: twoPeople({
    why: 'What has expired is income, the property of others, or money of a merchant.',
    when: [MOVES_MONEY],
    approvers: MONEY,
  }),
  agreement: {
    sentence: 'Extend voucher {voucher} of {merchant} to {expiry}, and give {amount} back to it',
    async of(asked) {
      const { serialNumber, expiry } = asked.input;
      return { ...(await ofVoucher(asked, serialNumber)), expiry, amount: changeIn(asked).after['amount'] };
    },
  },
  async run(caller, { serialNumber, expiry }) {
    await extendVoucher(caller, BigInt(serialNumber), await toEnd(caller, expiry, 'expiry'));
    return voucherJson(caller, BigInt(serialNumber));
  },
});

const replace = changing({
  name: 'voucher.replace',
  summary: 'Close a voucher for good and replace it by a new one, whose card `sheets.order-card` orders',
  method: 'POST',
  path: '/vouchers/:serialNumber/replace',
  command: 'voucher replace',
  input: Input({ serialNumber: SerialNumber, reason: Reason }),
  output: VoucherSchema,
  roles: CARE,
  approval: alone('The balance stays, and two people let the card out.'),
  risk: 'step-up',
  run: async (caller, { serialNumber }) =>
    voucherJson(caller, await replaceVoucher(caller, BigInt(serialNumber))),
});

const cancel = changing({
  name: 'voucher.cancel',
  summary: 'Cancel a voucher for good; its money goes back to the float that paid for it',
  method: 'POST',
  path: '/vouchers/:serialNumber/cancel',
  command: 'voucher cancel',
  input: Input({ serialNumber: SerialNumber, reason: Reason }),
  output: VoucherSchema,
  roles: MANAGE,
  approval: twoPeople({
    why: 'It cannot be undone, and moves money.',
    when: [ABOVE_LIMIT],
  }),
  agreement: {
    sentence:
      'Cancel voucher {voucher} of {merchant} for good, and give {amount} back to the float of {payer}',
    async of(asked) {
      const { refunded: amount, merchantId } = changeIn(asked).after;
      const payer = await merchantNamed(asked, merchantId as string | null);
      return { ...(await ofVoucher(asked, asked.input.serialNumber)), amount, payer };
    },
  },
  risk: 'step-up',
  async run(caller, { serialNumber }) {
    await cancelVoucher(caller, BigInt(serialNumber));
    return voucherJson(caller, BigInt(serialNumber));
  },
});

export const vouchers = {
  show,
  block: changeOne('block'),
  unblock: changeOne('unblock'),
  unlockPin: changeOne('unlock-pin'),
  extend,
  replace,
  cancel,
};

export const VOUCHERS = tableOf(...Object.values(vouchers));
