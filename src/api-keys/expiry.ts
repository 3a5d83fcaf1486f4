import type { Service } from '../context.ts';
import { sql } from '../db/sql.ts';
import { newId } from '../ledger/id.ts';
import { DAY_MS } from '../time.ts';
import { enqueueEvent } from '../webhooks/outbox.ts';

/** The time before the expiry of a key at which it is announced: enough to rotate it. */
const NOTICE_MS = 7 * DAY_MS;
/** The keys of one transaction. */
const PART = 100;

/** Announces keys that expire within a week, and keys that have expired: each once, in portions. */
export async function announceExpiries({ db, clock }: Service): Promise<void> {
  const now = clock();
  const near = new Date(now.getTime() + NOTICE_MS);
  for (let found = PART; found === PART; )
    found = await db.transaction(async (tx) => {
      const keys = await tx.query<Announced>(sql`
update api_keys k set expiry_announced = case when k.expires_at <= ${now} then 'expired' else 'expiring' end
from (
  select id from api_keys
  where revoked_at is null and expiry_announced is distinct from 'expired' and (expires_at <= ${now}
    or expiry_announced is null and expires_at <= ${near})
  order by expires_at limit ${PART} for update skip locked
) d
where k.id = d.id
returning k.id as "keyId", k.merchant_id as "merchantId", k.expires_at as "expiresAt",
  k.expiry_announced as state`);
      for (const { keyId, merchantId, expiresAt, state } of keys) {
        const event = { type: `api-key.${state}`, eventId: newId(now), subjectId: null } as const;
        await enqueueEvent(tx, { ...event, merchantId, data: { keyId, expiresAt }, now });
      }
      return keys.length;
    });
}

type Announced = {
  readonly keyId: string;
  readonly merchantId: number;
  readonly expiresAt: Date;
  readonly state: 'expiring' | 'expired';
};
