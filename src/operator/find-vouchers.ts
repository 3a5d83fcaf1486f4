import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import { findProgress } from '../batches/batch.ts';
import { maskCode } from '../ledger/transactions.ts';
import { toNumber } from '../money.ts';
import { alone, type Caller, changing, reading, tableOf } from '../operation.ts';
import { PAGE, Page, readCursor, writeCursor } from '../page.ts';
import { SEE_VOUCHERS } from '../principal.ts';
import { invalid, notFound } from '../problem.ts';
import {
  Input,
  Line,
  Major,
  MerchantId,
  Nullable,
  NullableTime,
  Reason,
  SerialNumber,
  Text,
  Time,
  TransactionId,
  toId,
  Word,
} from '../schema.ts';
import {
  type FoundVoucher,
  findByCode,
  findByMask,
  findBySerials,
  pageOfVouchers,
  serialOfTransaction,
  serialsOfReference,
} from '../vouchers/find.ts';
import { VOUCHER_STATES } from '../vouchers/operate.ts';

/**
 * The limit of searches by code per minute. A search reveals whether a code exists, and support needs no
 * more.
 */
const LOOK_UPS_MAX = 30;

const Found = Type.Object({
  serialNumber: SerialNumber,
  voucherCode: Type.String({ description: 'The code, masked.' }),
  state: Word(VOUCHER_STATES),
  merchantId: MerchantId,
  batch: Type.String({ description: 'The transaction id of its batch.' }),
  product: Text,
  currency: Text,
  balance: Major(),
  value: Nullable(Major()),
  activatedAt: NullableTime,
  expiresAt: Time,
  blockedAt: NullableTime,
  replacedBy: Nullable(SerialNumber),
});

export type VoucherSummary = Static<typeof Found>;

function toJson({ code, ...voucher }: FoundVoucher): VoucherSummary {
  return {
    ...voucher,
    serialNumber: String(voucher.serialNumber),
    voucherCode: maskCode(code),
    merchantId: String(voucher.merchantId),
    balance: toNumber(voucher.balance),
    value: voucher.value && toNumber(voucher.value),
    replacedBy: voucher.replacedBy === null ? null : String(voucher.replacedBy),
  };
}

const COLUMNS = ['serialNumber', 'voucherCode', 'state', 'balance', 'expiresAt', 'merchantId', 'batch'];

const State = Type.Optional(Word(VOUCHER_STATES, { description: 'Only vouchers in this state.' }));

type PageInput = {
  batch?: string | undefined;
  state?: FoundVoucher['state'] | undefined;
  cursor?: string | undefined;
  limit?: number | undefined;
};

/** Returns a page of the vouchers of a batch, or of all batches. */
async function page({ service }: Caller, { batch, state, cursor, limit = 50 }: PageInput) {
  const filters = { batch, state };
  const [after = '0'] = readCursor('vouchers', filters, cursor) ?? [];
  const found = batch === undefined ? undefined : await findProgress(service.readDb, batch);
  if (batch !== undefined && !found) throw notFound(`batch ${batch}`);
  const filter = { batchId: found?.batch.id ?? null, state: state ?? null };
  const { vouchers, next } = await pageOfVouchers(service, filter, BigInt(after), limit);
  return {
    items: vouchers.map(toJson),
    nextCursor: next === undefined ? null : writeCursor('vouchers', filters, [String(next)]),
  };
}

const list = reading({
  name: 'voucher.list',
  summary: 'List vouchers in the order of their serial numbers',
  description:
    'With a state, a page may contain fewer vouchers than its limit, or none, and still have a `nextCursor`: each page looks through a bounded ' +
    'number of vouchers.',
  method: 'GET',
  path: '/vouchers',
  command: 'voucher list',
  input: Input({ ...PAGE, batch: Type.Optional(TransactionId), state: State }),
  output: Page(Found),
  columns: COLUMNS,
  roles: SEE_VOUCHERS,
  run: page,
});

const find = changing({
  name: 'voucher.find',
  summary: 'Find vouchers by code, masked code, reference, transaction or batch',
  description: 'Each look-up of a code is recorded in the audit. Each token or user has 30 a minute.',
  method: 'POST',
  path: '/vouchers/find',
  command: 'voucher find',
  input: Input({
    ...PAGE,
    code: Type.Optional(
      Type.String({
        pattern: '^[0-9]{12}$',
        description: 'The full code, 12 digits, without the PIN.',
        stdin: true,
      }),
    ),
    masked: Type.Optional(
      Type.String({
        pattern: '^[0-9]{4}\\*{4}[0-9]{4}$',
        description: 'A masked code.',
        examples: ['4829****7641'],
      }),
    ),
    reference: Type.Optional(Line(100, "A merchant's reference, with merchantId.", 'order-10071')),
    merchantId: Type.Optional(MerchantId),
    transactionId: Type.Optional(TransactionId),
    batch: Type.Optional(TransactionId),
    state: State,
    reason: Reason,
  }),
  output: Page(Found),
  columns: COLUMNS,
  roles: SEE_VOUCHERS,
  approval: alone('It shows no code, and each search by a code is recorded.'),
  async run(caller, input) {
    const { code, masked, reference, transactionId, batch, state, merchantId } = input;
    const given = [code, masked, reference, transactionId, batch].filter((each) => each !== undefined);
    if (given.length !== 1)
      throw invalid(
        'code',
        'required',
        'or one of `masked`, `reference`, `transactionId` and `batch` is required, and only one',
      );
    if (merchantId !== undefined && reference === undefined)
      throw invalid('merchantId', 'dependent', 'needs `reference`');
    if (state !== undefined && batch === undefined && transactionId === undefined && reference === undefined)
      throw invalid('state', 'dependent', 'needs `batch`');
    if (code !== undefined || masked !== undefined) return byCode(caller, code, masked);
    if (batch !== undefined) return page(caller, input);
    const named = await byDeed(caller, input);
    if (named.batch !== undefined) return page(caller, { ...input, batch: named.batch });
    const items = (await findBySerials(caller.service, named.serials)).map(toJson);
    return { items: state ? items.filter((each) => each.state === state) : items, nextCursor: null };
  },
});

/** Finds the vouchers of a code, with an entry in the audit. @throws Problem `too-many-requests` */
async function byCode(caller: Caller, code: string | undefined, masked: string | undefined) {
  const { service } = caller;
  const found = await (code === undefined ? findByMask(service, masked ?? '') : findByCode(service, code));
  const items = found.map(toJson);
  const after = {
    by: code === undefined ? 'masked code' : 'code',
    found: items.map(({ serialNumber }) => serialNumber),
  };
  const subject = items.length === 1 ? `voucher ${items[0]?.serialNumber}` : 'vouchers';
  const change = { action: 'voucher.find', subject, after, perMinute: LOOK_UPS_MAX };
  await service.db.transaction((tx) => audit(tx, caller, change));
  return { items, nextCursor: null };
}

type Deed = {
  reference?: string | undefined;
  merchantId?: string | undefined;
  transactionId?: string | undefined;
};

/** Finds the vouchers or the batch of a reference or a transaction. */
async function byDeed({ service }: Caller, { reference, merchantId, transactionId }: Deed) {
  if (reference !== undefined) {
    if (merchantId === undefined) throw invalid('merchantId', 'required', 'is required with reference');
    return serialsOfReference(service.readDb, toId(merchantId, 'merchantId'), reference);
  }
  const id = transactionId as string;
  const serial = await serialOfTransaction(service.readDb, id);
  if (serial !== undefined) return { serials: [serial], batch: undefined };
  const batch = await findProgress(service.readDb, id);
  if (!batch) throw notFound(`transaction ${id}`);
  return { serials: [], batch: id };
}

export const foundVouchers = { list, find };

export const FOUND_VOUCHERS = tableOf(list, find);
