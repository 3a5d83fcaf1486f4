import { bucketsOf } from '../../src/db/buckets.ts';
import type { Queries } from '../../src/db/pool.ts';
import type { Sql } from '../../src/db/sql.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { writeCursor } from '../../src/page.ts';
import { listBatchesOf, listByCodeRanges, listVoucherRows } from '../../src/vouchers/find.ts';
import { listAttempts, listDeliveries } from '../../src/webhooks/deliveries.ts';

/** The statement of every list of the operator API, with each of its filters. */

const FIRST = '00000000-0000-7000-8000-000000000000';
const LAST = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
const NOW = new Date('2026-01-31T12:00:00Z');
const SINCE = NOW.toISOString();
const PLACE = [9, '10000000064'] as const;
const SOUGHT = { scanned: 5_000, listed: 50 };

/**
 * A statement that a list reads: of the operation with a name, at a position of its list.
 * @param rows what the statements before it return; none: it is the first one
 */
async function statementOf(
  name: string,
  filters: object,
  after: readonly (string | number)[],
  rows: readonly object[][] = [],
): Promise<Sql> {
  const operation = OPERATIONS.find((each) => each.name === name);
  const cursor = after.length === 0 ? undefined : writeCursor(after);
  return askedBy(async (db) => {
    const service = { readDb: db, db, clock: () => NOW, buckets: bucketsOf([0]) };
    await operation?.run(
      { service, principal: { roles: ['support'], userId: 3, merchantId: null } } as never,
      { ...filters, cursor } as never,
    );
  }, rows);
}

/** Returns a statement of a function: the first one, or that after those that return the rows. */
async function askedBy(
  read: (db: Queries) => Promise<unknown>,
  rows: readonly object[][] = [],
): Promise<Sql> {
  const asked: Sql[] = [];
  const query = async (statement: Sql) => rows[asked.push(statement) - 1] ?? [];
  await read({ query } as never);
  const found = asked[rows.length];
  if (!found) throw new Error('nothing is read');
  return found;
}

export const LISTS: Readonly<Record<string, Sql>> = {
  merchants: await statementOf('merchant.list', {}, [9]),
  'the newest merchants': await statementOf('merchant.list', { sort: '-createdAt' }, [9]),
  'merchants by name': await statementOf('merchant.list', { name: 'corner' }, []),
  floats: await statementOf('float.show', {}, [9, 'USD']),
  'floats of a merchant': await statementOf('float.show', { merchantId: '1' }, [], [[{ id: 1 }]]),
  'low floats': await statementOf('float.low', {}, []),
  settlements: await statementOf('settlement.list', {}, [9]),
  'settlements of a merchant': await statementOf('settlement.list', { merchantId: '1', state: 'PAID' }, [9]),
  'settlements to be paid': await statementOf('settlement.list', { state: 'APPROVED' }, [9]),
  disputes: await statementOf('settlement.disputes', { open: true }, [9]),
  statements: await statementOf('bank.statements', { account: 'House' }, [9]),
  entries: await statementOf('bank.entries', { account: 'House' }, [9]),
  'open entries': await statementOf('bank.entries', { open: true }, [9]),
  'movements of the bank': await statementOf('bank.movements', { open: false }, [LAST]),
  'open movements of the bank': await statementOf('bank.movements', { open: true }, [LAST]),
  jobs: await statementOf('job.list', {}, [9]),
  approvals: await statementOf('approval.list', { waiting: true }, [9]),
  users: await statementOf('user.list', { merchantId: '1' }, [9]),
  'changes that broke the glass': await statementOf('audit.break-glass', {}, []),
  'changes since a time': await statementOf('audit.list', { action: 'merchant.suspend', from: SINCE }, []),
  batches: await statementOf('batch.list', {}, []),
  'the oldest batches': await statementOf('batch.list', { sort: 'acceptedAt' }, [9]),
  'the oldest batches of a merchant': await statementOf(
    'batch.list',
    { merchantId: '1', sort: 'acceptedAt' },
    [9],
  ),
  'batches of a merchant': await statementOf('batch.list', { merchantId: '1' }, [9]),
  'batches of a product': await statementOf('batch.list', { product: 'DEFAULT' }, [9]),
  'batches by status': await statementOf('batch.list', { status: 'PROCESSING' }, [9]),
  'batches whose vouchers are listed': listBatchesOf({}, null, 2 ** 31 - 1),
  'batches of a merchant whose vouchers are listed': listBatchesOf({ merchantId: '1' }, null, 2 ** 31 - 1),
  'batches of a product whose vouchers are listed': listBatchesOf({ product: 'DEFAULT' }, null, 2 ** 31 - 1),
  vouchers: listVoucherRows([1], PLACE, {}, NOW, { scanned: 50, listed: 50 }),
  'vouchers by state': listVoucherRows([1], PLACE, { state: 'BLOCKED' }, NOW, SOUGHT),
  'vouchers that expire by a time': listVoucherRows(
    [1],
    PLACE,
    { expiry: { from: null, to: NOW } },
    NOW,
    SOUGHT,
  ),
  'vouchers of several batches': listVoucherRows([1, 2], PLACE, { balanceMin: 1 }, NOW, SOUGHT),
  'vouchers by code': listByCodeRanges([{ first: FIRST, last: FIRST }], NOW),
  'vouchers by masked code': listByCodeRanges(
    [{ first: '4829a0f1-0000-0000-0000-000000000000', last: '4829a0f1-ffff-ffff-ffff-ffffffffffff' }],
    NOW,
  ),
  deliveries: await askedBy((db) => listDeliveries(db, 1, null, 51, LAST)),
  'failed deliveries': await askedBy((db) => listDeliveries(db, 1, 'FAILED', 51, LAST)),
  'attempts of a delivery': await askedBy((db) => listAttempts(db, 1, FIRST)),
  transactions: await statementOf('transaction.list', {}, [LAST]),
  'the oldest transactions since a time': await statementOf(
    'transaction.list',
    { sort: 'timestamp', from: SINCE },
    [FIRST],
  ),
  'the oldest transactions of a merchant': await statementOf(
    'transaction.list',
    { sort: 'timestamp', merchantId: '1' },
    [FIRST],
  ),
  'transactions of a merchant': await statementOf('transaction.list', { merchantId: '1' }, [LAST]),
  'transactions of a voucher': await statementOf('transaction.list', { serialNumber: '10000000064' }, [LAST]),
  declines: await statementOf('decline.list', {}, [LAST]),
  'declines of a merchant': await statementOf('decline.list', { merchantId: '1' }, [LAST]),
  'declines of a voucher': await statementOf('decline.list', { serialNumber: '10000000064' }, [LAST]),
  'currencies of declines': await statementOf(
    'decline.list',
    {},
    [LAST],
    [[{ id: FIRST, serialNumber: '10000000064' }]],
  ),
  'declines by code': await statementOf('decline.count', { from: '2026-03-02', to: '2026-03-02' }, []),
  changes: await statementOf('audit.list', {}, []),
  'changes of a subject': await statementOf('audit.list', { subject: 'merchant 5' }, [9]),
  'changes by an actor': await statementOf('audit.list', { actor: 'anna' }, [9]),
  'changes of an action': await statementOf('audit.list', { action: 'merchant.suspend' }, [9]),
  'changes by a kind of actor': await statementOf('audit.list', { actorKind: 'token' }, [9]),
  'changes until a time': await statementOf('audit.list', { to: SINCE }, []),
};

/** Tables that grow with the business. */
export const LARGE =
  /^(vouchers|journal|declines|decline_counts|batches|audit|claims|redemption_updates|merchants|floats|settlements|bank_entries|book_slices|webhook_deliveries|webhook_attempts)/;
