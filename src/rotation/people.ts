import type { Service } from '../context.ts';
import { ownerOfTotp } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { sealedUnder } from '../keyring/ring.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { listTotpSecrets, lockTotpSecret, setTotpSecret } from './queries.ts';

type Row = { id: number; secret: Buffer };

/** Puts the secrets of all authenticator apps under the key that seals now, a user in each transaction. */
export async function resealTotpSecrets({ db, keys }: Service): Promise<void> {
  for (const { id } of await db.query<Row>(listTotpSecrets())) {
    await db.transaction(async (tx) => {
      await holdKeyRing(tx, keys);
      const [row] = await tx.query<Row>(lockTotpSecret(id));
      if (!row || sealedUnder(row.secret) === keys.current) return;
      const secret = keys.openText(ownerOfTotp(id), row.secret);
      await tx.query(setTotpSecret(id, keys.sealText(ownerOfTotp(id), secret)));
    });
  }
}

/** How many of them are sealed under each key. */
export async function countTotpSecrets(db: Queries): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { secret } of await db.query<Row>(listTotpSecrets()))
    counts.set(sealedUnder(secret), (counts.get(sealedUnder(secret)) ?? 0) + 1);
  return counts;
}
