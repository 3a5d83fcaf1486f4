import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sealedUnder } from '../keyring/ring.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { ownerOf } from '../webhooks/endpoints.ts';
import { listSecrets, lockSecrets, setSecrets } from './queries.ts';

type Row = { id: number; secret: Buffer; previous_secret: Buffer | null };

const secretsOf = ({ secret, previous_secret }: Row) =>
  previous_secret ? [secret, previous_secret] : [secret];

/** Puts the secrets of all endpoints under the key that seals now, an endpoint in each transaction. */
export async function resealSecrets({ db, keys }: Service): Promise<void> {
  for (const { id } of await db.query<Row>(listSecrets())) {
    await db.transaction(async (tx) => {
      await holdKeyRing(tx, keys);
      const [row] = await tx.query<Row>(lockSecrets(id));
      if (!row || secretsOf(row).every((sealed) => sealedUnder(sealed) === keys.current)) return;
      const reseal = (sealed: Buffer) => keys.sealText(ownerOf(id), keys.openText(ownerOf(id), sealed));
      await tx.query(setSecrets(id, reseal(row.secret), row.previous_secret && reseal(row.previous_secret)));
    });
  }
}

/** How many secrets of endpoints are sealed under each key. */
export async function countSecrets(db: Queries): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const row of await db.query<Row>(listSecrets())) {
    for (const sealed of secretsOf(row))
      counts.set(sealedUnder(sealed), (counts.get(sealedUnder(sealed)) ?? 0) + 1);
  }
  return counts;
}
