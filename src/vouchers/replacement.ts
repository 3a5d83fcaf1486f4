import type { Service } from '../context.ts';
import { randomCode, randomPin } from '../credentials.ts';
import { serialOf, slotOfSerial } from '../db/buckets.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { newId } from '../ledger/id.ts';
import { drawNumber, findCodeKeys, replaceBy } from './queries.ts';

/** If the code exists, another one is drawn. */
export async function insertReplacement(
  { keys, clock }: Service,
  tx: Queries,
  bucket: number,
  replaced: bigint,
): Promise<bigint> {
  const now = clock();
  for (;;) {
    const [drawn] = await tx.query<{ number: bigint }>(drawNumber());
    const code = randomCodeOf(keys, slotOfSerial(replaced));
    const serialNumber = serialOf(drawn?.number as bigint, slotOfSerial(replaced));
    const older = keys.olderCodeKeys(code);
    if (older.length > 0 && (await tx.query(findCodeKeys(plainArray(older)))).length > 0) continue;
    const pin = randomPin();
    const by = {
      serialNumber,
      codeKey: keys.codeKey(code),
      pinKey: keys.pinKey(code, pin),
      sealed: keys.seal(serialNumber, code, pin),
      entryId: newId(now),
    };
    const [made] = await tx.query<{ done: boolean }>(replaceBy(bucket, replaced, by, now));
    if (made?.done) return serialNumber;
  }
}

/**
 * A code with a given slot, so that a voucher and its successor are in one bucket: one of 64 drawn
 * codes.
 */
function randomCodeOf(keys: KeyRing, slot: number): string {
  for (;;) {
    const code = randomCode();
    if (keys.slotOf(code) === slot) return code;
  }
}
