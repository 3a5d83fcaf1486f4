import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perform } from '../../src/operations/perform.ts';
import { createToken } from '../../src/people/tokens.ts';
import { spend } from '../support/books.ts';
import { openStage, type Stage } from '../support/console.scene.ts';
import { COMMAND_LINE } from '../support/harness.ts';
import { close, draftOf, terms } from '../support/settlements.ts';

/** Whoever looks at an approved change sees who proposed it, and who approved it. */

test('a settlement, the audit and a voucher name maker and checker; a merchant sees neither', async (t) => {
  const stage = await openStage(t);
  const { scene, owner, ask } = stage;
  const maker = await stage.join('finance');
  const [fiona, olga] = [maker.person.email, owner.person.email];
  const merchantId = String(scene.shop.merchant.id);
  const drafts = (await ask(maker, '/settlements', { merchantId })) as { items: { id: string }[] };
  const path = `/settlements/${drafts.items[0]?.id}`;
  const agree = async (at: string, body: object) => {
    const { approval } = (await ask(maker, at, body)) as { approval: { id: string } };
    await ask(owner, `/approvals/${approval.id}/approve`, {});
  };
  await agree(`${path}/approve`, {});
  assert.equal((await ask(owner, path))['approvedBy'], `${fiona}, ${olga}`);
  const serial = stage.sold.serial;
  await agree(`/vouchers/${serial}/escheat`, { reference: 'state' });
  const { timeline } = (await ask(owner, `/vouchers/${serial}`)) as { timeline: Record<string, unknown>[] };
  assert.deepEqual([timeline[0]?.['actor'], timeline[0]?.['approvedBy']], [fiona, olga]);
  for (const action of ['settlement.approve', 'voucher.escheat']) {
    const { items } = (await ask(owner, `/audit?action=${action}`)) as {
      items: { actor: string; after: Record<string, unknown> }[];
    };
    assert.deepEqual([items[0]?.actor, items[0]?.after['approvedBy']], [fiona, olga], action);
  }
  const merchant = await stage.join('owner', true);
  const listed = (await ask(merchant, '/settlements')) as { items: Record<string, unknown>[] };
  for (const seen of [await ask(merchant, path), listed.items[0]])
    assert.deepEqual([seen?.['madeBy'], seen?.['approvedBy']], [null, null]);
});

/** Proposes something with a token that is nobody’s, so that two people approve it. @returns its id */
async function proposedByNobody({ listening }: Stage, path: string): Promise<string> {
  const request = {
    service: listening.service,
    principal: { ...COMMAND_LINE, kind: 'break-glass' },
    input: { roles: ['finance'], stepUp: true, reason: 'the night' },
  };
  const { token } = (await perform(createToken as never, request as never)).output as { token: string };
  const response = await fetch(`${listening.baseUrl}/operator/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  });
  return ((await response.json()) as { approval: { id: string } }).approval.id;
}

test('a settlement and its payout are approved by different people', async (t) => {
  const stage = await openStage(t, { isClosed: false });
  const { scene, ask } = stage;
  const { ledger, issuer } = scene;
  await terms(ledger.operator, issuer.merchant.id);
  await spend(issuer, stage.sold, 5);
  await ledger.at('2026-03-03T00:20:00Z');
  await close(ledger);
  const owner = await stage.join('owner');
  const maker = await stage.join('finance');
  const merchantId = String(scene.shop.merchant.id);
  const drafts = (await ask(maker, '/settlements', { merchantId })) as { items: { id: string }[] };
  const path = `/settlements/${drafts.items[0]?.id}`;
  const propose = async (by: typeof maker, at: string, body: object) =>
    ((await ask(by, at, body)) as { approval: { id: string } }).approval.id;
  await ask(owner, `/approvals/${await propose(maker, `${path}/approve`, {})}/approve`, {});
  const paid = { reference: 'payout', bankReference: 'E2E-1' };
  const refused = await propose(maker, `${path}/pay`, paid);
  // Whoever approves another settlement later changes nothing.
  const { id } = await draftOf({ ...scene, shop: issuer });
  const another = await proposedByNobody(stage, `/settlements/${id}/approve`);
  const both = [owner, await stage.join('finance')] as const;
  for (const each of both) await ask(each, `/approvals/${another}/approve`, {});
  const payout = await propose(maker, `/settlements/${id}/pay`, { ...paid, reference: 'other payout' });
  for (const each of both)
    await assert.rejects(ask(each, `/approvals/${payout}/approve`, {}), /you approved settlement\.approve/);
  await assert.rejects(ask(owner, `/approvals/${refused}/approve`, {}), /you approved settlement\.approve/);
  const proposed = await propose(owner, `${path}/pay`, paid);
  await ask(maker, `/approvals/${proposed}/approve`, {});
  assert.equal((await ask(owner, path))['state'], 'PAID');
});
