import assert from 'node:assert/strict';
import { sql } from '../../src/db/sql.ts';
import { type Browser, enrolled, type Person } from './browser.ts';
import { type ListeningService, testService } from './harness.ts';
import type { Scope } from './scope.ts';

/** Two people who approve each other’s proposals. */

type Scene = {
  readonly listening: ListeningService;
  readonly ada: Browser;
  readonly bob: Browser;
  readonly people: readonly [Person, Person];
  readonly merchantId: string;
};

/** Two owners who are signed in, and a merchant. */
export async function scene(t: Scope): Promise<Scene> {
  const listening = await testService(t);
  const { id } = await listening.createMerchant();
  const ada = await enrolled(listening);
  const bob = await enrolled(listening, { email: 'bob@example.com' });
  return {
    listening,
    ada: ada.browser,
    bob: bob.browser,
    people: [ada.person, bob.person],
    merchantId: String(id),
  };
}

/** A top-up above the limit, unless an amount is given. */
export const topUp = (merchantId: string, amount = 20_000) => ({
  merchantId,
  amount,
  reason: 'A transfer came in.',
});

/** Approves what was proposed. @returns the answer of the operation, with its secrets */
export async function approved(
  by: Browser,
  proposed: { status: number; text: string; body: { approval: { id: string } } },
  // biome-ignore lint/suspicious/noExplicitAny: a test may read any part of an answer.
): Promise<any> {
  assert.equal(proposed.status, 202, proposed.text);
  const { status, text, body } = await by.post(`/approvals/${proposed.body.approval.id}/approve`);
  assert.equal(status, 200, text);
  return body.output;
}

/** The sum of all floats, in minor units. */
export async function floatOf({ service }: ListeningService): Promise<number> {
  const [row] = await service.db.query<{ sum: bigint }>(
    sql`select sum(balance_minor)::bigint as sum from floats`,
  );
  return Number(row?.sum ?? 0);
}

/** The serial number of a new voucher. */
export async function voucherOf(listening: ListeningService, value = 25): Promise<string> {
  const body = { reference: `of ${value}`, quantity: 1, value };
  const request = { method: 'POST', path: '/api/v2/vouchers', body } as const;
  const made = await listening.request(await listening.createMerchant(), request);
  return String(made.data.vouchers[0].serialNumber);
}
