import type { Context } from '../context.ts';
import { type HotStatement, type Sql, sql } from '../db/sql.ts';
import { locate, lookingUp } from './booking.ts';
import { checkLookupReference } from './claims.ts';
import { idFloor } from './id.ts';
import { type Transaction, type TransactionRow, toTransaction } from './transaction.ts';

/** The longest list of transactions in the API. list_transactions of sql/011-transactions.sql has it too. */
const LIST_MAX = 50;

/** The function of sql/011-transactions.sql. */
export const FIND_TRANSACTIONS: HotStatement = {
  name: 'find-transactions',
  text: 'select * from find_transactions($1, $2, $3, $4)',
};

/**
 * Lists the newest transactions of a merchant, newest first, by the function of sql/011-transactions.sql. It
 * does not include activations by batches: see listBatchActivations.
 */
const listOwnTransactions = (merchantId: number, inForce: boolean) =>
  sql`select * from list_transactions(${merchantId}, ${inForce})`;

/** Lists a merchant's completed batches whose vouchers were active at once, newest activation first. */
function listActivatedBatches(merchantId: number, oldestId: string): Sql {
  return sql`
select id, quantity from batches
where merchant_id = ${merchantId} and status = 'COMPLETED' and newest_activation > ${oldestId}::uuid
order by newest_activation desc limit ${LIST_MAX}`;
}

const ACTIVATIONS = sql`
select j.id, j.kind, j.amount_minor, j.occurred_at, b.reference, j.serial_number, j.original_id,
  false as canceled, v.sealed, b.decimals`;

const JOURNAL_AND_BATCH = sql`
join journal j on j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'ACTIVATION'
  and j.batch_id = v.batch_id
join batches b on b.id = v.batch_id`;

/** Lists the activations of all vouchers of small batches. */
export const listSmallBatchActivations = (batchIds: readonly number[]) =>
  sql`${ACTIVATIONS} from vouchers v ${JOURNAL_AND_BATCH} where v.batch_id = any (${batchIds}::int[])`;

/** Lists the activations of a batch's newest vouchers, without reading a batch of millions. */
export const listLargeBatchActivations = (batchId: number) => sql`${ACTIVATIONS}
from (
  select serial_number, bucket, sealed, batch_id from vouchers
  where batch_id = ${batchId} order by serial_number desc limit ${LIST_MAX}
) v ${JOURNAL_AND_BATCH}`;

/** A transaction in force. `reversed`: an update has reversed the redemption in full. */
type ActiveRow = Omit<TransactionRow, 'canceled'> & {
  readonly outcome: 'ok' | 'reversed';
};

const lookups = lookingUp<ActiveRow>(FIND_TRANSACTIONS);

/**
 * Finds the active transaction of a reference: the redemption or its replacement by an update, otherwise the
 * activation. A transaction without a reference is found by its id.
 * @returns undefined if there is none, also after a full reversal
 * @throws Refusal `18`
 */
export async function findTransaction(context: Context, reference: string): Promise<Transaction | undefined> {
  checkLookupReference(reference);
  const { service, merchant } = context;
  for (const { id, bucket } of await locate(service, merchant.id, ['redeem', 'activate'], reference)) {
    const row = await service.batcher.add(lookups, bucket, { context, reference, id });
    if (row)
      return row.outcome === 'ok' ? toTransaction(service.keys, { ...row, canceled: false }) : undefined;
  }
  return undefined;
}

/**
 * Lists the merchant's most recent transactions, newest first, at most 50.
 * @param options.inForceOnly leaves out reversals, and redemptions that an update has replaced
 */
export async function listTransactions(
  context: Context,
  options: { inForceOnly: boolean },
): Promise<Transaction[]> {
  const { readDb, keys } = context.service;
  const own = await readDb.query<TransactionRow>(
    listOwnTransactions(context.merchant.id, options.inForceOnly),
  );
  const oldest = own.length < LIST_MAX ? undefined : own.at(-1);
  const generated = await listGenerated(context, oldest?.id ?? idFloor(new Date(0)));
  return [...own, ...generated]
    .sort((one, other) => (one.id < other.id ? 1 : -1))
    .slice(0, LIST_MAX)
    .map((row) => toTransaction(keys, row));
}

/**
 * Lists activations by generation, from the newest completed batches backwards, until a list is full.
 * @param oldestId a batch without a newer activation does not count
 */
async function listGenerated({ service, merchant }: Context, oldestId: string): Promise<TransactionRow[]> {
  const { readDb } = service;
  const batches = await readDb.query<{ id: number; quantity: number }>(
    listActivatedBatches(merchant.id, oldestId),
  );
  const small: number[] = [];
  let large: number | undefined;
  for (let [at, count] = [0, 0]; at < batches.length && count < LIST_MAX && large === undefined; at++) {
    const { id, quantity } = batches[at] as { id: number; quantity: number };
    if (quantity > LIST_MAX) large = id;
    else small.push(id);
    count += quantity;
  }
  return [
    ...(small.length > 0 ? await readDb.query<TransactionRow>(listSmallBatchActivations(small)) : []),
    ...(large === undefined ? [] : await readDb.query<TransactionRow>(listLargeBatchActivations(large))),
  ];
}
