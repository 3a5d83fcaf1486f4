import Type, { type TObject } from 'typebox';
import { EntrySchema } from '../audit/entries.ts';
import { BatchSchema, findBatchOf } from '../batches/batch.ts';
import { sql } from '../db/sql.ts';
import { type Caller, reading, tableOf } from '../operation.ts';
import { SEE_VOUCHERS } from '../principal.ts';
import { notFound, Problem } from '../problem.ts';
import { Positional, Text, UUID } from '../schema.ts';
import { showTransaction, TransactionSchema } from '../transactions/transactions.ts';
import { DeclineSchema, findDecline } from '../vouchers/declines.ts';

/**
 * What became of a request, by the `X-Request-Id` of its answer: a request that booked something has the id
 * of its transaction, a decline that of its request, and an entry of the audit names its request.
 */

const orNull = <Schema extends TObject>(schema: Schema) =>
  Type.Unsafe<Type.Static<Schema> | null>({ ...schema, type: ['object', 'null'] });

const Change = Type.Pick(EntrySchema, ['sequence', 'occurredAt', 'actor', 'action', 'subject']);

export const showRequest = reading({
  name: 'request.show',
  summary: 'Find what became of a request, by the X-Request-Id of its answer',
  description:
    'A booking, a decline or the changes in the audit. Reads, repetitions and requests that were refused ' +
    'before they named a voucher leave no record but their line in the log of the service.',
  path: '/requests/:requestId',
  input: {
    requestId: Positional(
      Type.String({
        pattern: `^${UUID}$`,
        description: 'The `X-Request-Id` of an answer.',
        examples: ['0198c2f0-4a1b-7c3d-8e5f-0123456789ab'],
      }),
    ),
  },
  output: Type.Object({
    requestId: Text,
    transaction: orNull(TransactionSchema),
    batch: orNull(BatchSchema),
    decline: orNull(DeclineSchema),
    changes: Type.Array(Change),
  }),
  roles: SEE_VOUCHERS,
  async run(caller, { requestId }) {
    const [transaction, batch, decline, changes] = await Promise.all([
      ownOf(caller, findTransaction(caller, requestId)),
      ownOf(caller, findBatchOf(caller.service.readDb, requestId)),
      findDecline(caller, requestId),
      listChanges(caller, requestId),
    ]);
    if (!transaction && !batch && !decline && changes.length === 0)
      throw notFound(`record of request ${requestId}`);
    return { requestId, transaction, batch, decline: decline ?? null, changes };
  },
});

async function findTransaction({ service }: Caller, id: string) {
  try {
    return await showTransaction(service, id);
  } catch (error) {
    if (error instanceof Problem && error.code === 'not-found') return undefined;
    throw error;
  }
}

/** Returns what was found, or null if the caller is of another merchant. */
async function ownOf<Found extends { readonly merchantId: string | null }>(
  { principal }: Caller,
  found: Promise<Found | undefined>,
): Promise<Found | null> {
  const result = await found;
  if (!result) return null;
  const isVisible = principal.merchantId === null || result.merchantId === String(principal.merchantId);
  return isVisible ? result : null;
}

/** Lists the changes of a request; a merchant sees those of its own people and tokens. */
function listChanges({ service, principal }: Caller, requestId: string) {
  const own = principal.merchantId;
  return service.readDb.query<Type.Static<typeof Change>>(sql`
select a.sequence::text, a.occurred_at as "occurredAt", a.actor, a.action, a.subject from audit a
where a.request_id = ${requestId} and (${own}::integer is null
  or a.actor_kind = 'user' and a.actor_id in (select u.id::text from users u where u.merchant_id = ${own})
  or a.actor_kind = 'token'
    and a.actor_id in (select t.id::text from operator_tokens t where t.merchant_id = ${own}))
order by a.sequence limit 100`);
}

export const OPERATIONS = tableOf(showRequest);
