import assert from 'node:assert/strict';
import { type Verification, verifyAudit } from '../../src/audit/verify.ts';
import type { Service } from '../../src/context.ts';
import type { openOwner } from '../../src/db/pool.ts';

/** Tampers with the audit as the owner of its tables, verifies it, and puts everything back. */
export async function verifyAfter(
  service: Service,
  owner: Awaited<ReturnType<typeof openOwner>>,
  text: string,
): Promise<Verification> {
  const run = (statement: string) => owner.query({ text: statement, values: [] });
  await run('create temp table kept as table audit');
  try {
    await run(text);
    return await verifyAudit(service, null);
  } finally {
    await run('truncate audit; insert into audit table kept; drop table kept');
    assert.equal((await verifyAudit(service, null)).ok, true);
  }
}
