import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MOVED } from '../../src/books/reports/liability.ts';
import { sql } from '../../src/db/sql.ts';
import { ACCOUNT_KINDS, MOVEMENT_KINDS, MOVEMENTS, movementOf } from '../../src/ledger/kinds.ts';
import { startTestService } from '../support/harness.ts';

test('the database allows exactly the kinds of movements that have a row, and their moves', async (t) => {
  const { service, stop } = await startTestService();
  t.after(stop);
  const [types] = await service.db.query<{ kinds: string[]; accounts: string[]; operations: string[] }>(sql`
select enum_range(null::entry_kind)::text[] as kinds, enum_range(null::account_kind)::text[] as accounts,
  enum_range(null::operation)::text[] as operations`);
  assert.deepEqual(types?.kinds, MOVEMENT_KINDS);
  // A voucher is an account of its own, outside the table of accounts.
  assert.deepEqual([...(types?.accounts ?? []), 'VOUCHER'].sort(), [...ACCOUNT_KINDS].sort());
  const allowed = await service.db.query<{ kind: string; moves: string[] }>(sql`
select k as kind, array_agg(d || ' ' || c) as moves
from unnest(${MOVEMENT_KINDS}::text[]) k, unnest(${ACCOUNT_KINDS}::text[]) d,
  unnest(${ACCOUNT_KINDS}::text[]) c
where is_movement(k, d, c) group by k`);
  const told = MOVEMENT_KINDS.map((kind) => ({ kind, moves: [...MOVEMENTS[kind].moves].sort() }));
  const byKind = (one: { kind: string }, other: { kind: string }) => (one.kind < other.kind ? -1 : 1);
  assert.deepEqual(
    allowed.map(({ kind, moves }) => ({ kind, moves: moves.sort() })).sort(byKind),
    told.sort(byKind),
  );
  for (const kind of MOVEMENT_KINDS) {
    const { operation, reverses } = movementOf(kind);
    if (operation) assert.ok(types?.operations.includes(operation), operation);
    if (reverses)
      assert.ok(
        MOVEMENT_KINDS.some((each) => each === reverses),
        reverses,
      );
  }
});

test('every movement of a voucher is in exactly one column of R2', () => {
  const listed: string[] = Object.values(MOVED).flat();
  const moved = MOVEMENT_KINDS.filter((kind) => kind !== 'REPLACEMENT').flatMap((kind) => {
    const signs = MOVEMENTS[kind].moves.flatMap((each) => [
      ...(each.startsWith('VOUCHER ') ? ['-'] : []),
      ...(each.endsWith(' VOUCHER') ? ['+'] : []),
    ]);
    return [...new Set(signs)].map((sign) => sign + kind);
  });
  assert.deepEqual(listed.sort(), moved.sort());
});
