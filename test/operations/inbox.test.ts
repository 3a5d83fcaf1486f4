import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DAY_MS } from '../../src/time.ts';
import { openStage, type Somebody, type Stage } from '../support/console.scene.ts';
import { ofFile } from '../support/scope.ts';

/** What waits for a person: matters of the lists that the roles may see, in one answer. */

type Item = {
  readonly matter: string;
  readonly count: number;
  readonly isYours: boolean;
  readonly at: string | null;
  readonly link: string;
  readonly about: readonly { readonly name: string; readonly daysLeft: number | null }[];
};

const t = ofFile();
let stage: Stage;

before(async () => {
  stage = await openStage(t, { isClosed: false });
});

const inboxOf = async (who: Somebody) => ((await stage.ask(who, '/inbox')) as { items: Item[] }).items;
const find = async (who: Somebody, matter: string) =>
  (await inboxOf(who)).find((each) => each.matter === matter);

describe('the inbox', () => {
  test('has a proposal for those who decide it, and its decision for the one who made it', async () => {
    const { merchantId } = stage;
    const maker = await stage.join('finance');
    const wanted = { merchantId, amount: 200_000, reference: 'large' };
    const { approval } = (await stage.ask(maker, '/floats/top-up', wanted)) as { approval: { id: string } };
    const link = `/approvals/${approval.id}`;
    const waiting = await find(stage.owner, 'approval-waiting');
    assert.deepEqual([waiting?.count, waiting?.link, waiting?.isYours], [1, link, true]);
    assert.equal(await find(maker, 'approval-waiting'), undefined);
    const support = await stage.join('support');
    assert.equal(await find(support, 'approval-waiting'), undefined);
    await stage.ask(stage.owner, `/approvals/${approval.id}/approve`, {});
    assert.equal(await find(stage.owner, 'approval-waiting'), undefined);
    const decided = await find(maker, 'proposal-decided');
    assert.deepEqual([decided?.count, decided?.link], [1, link]);
    assert.ok(decided?.at);
    assert.equal(await find(stage.owner, 'proposal-decided'), undefined);
  });

  test('shows a low float to all who see floats, and as theirs to those who can top it up', async () => {
    const merchantId = String(stage.scene.issuer.merchant.id);
    await stage.ask(stage.owner, '/floats/warn', { merchantId, below: 900_000 });
    const support = await stage.join('support');
    for (const [who, isYours] of [
      [stage.owner, true],
      [support, false],
    ] as const) {
      const low = await find(who, 'float-low');
      assert.deepEqual(
        [low?.isYours, low?.link, low?.about.length],
        [isYours, `/merchants/${merchantId}`, 1],
      );
    }
    const developer = await stage.join('developer');
    assert.equal(await find(developer, 'float-low'), undefined);
  });

  test('has a day that was not closed, once it has ended more than a day ago', async () => {
    const { ledger } = stage.scene;
    assert.equal(await find(stage.owner, 'day-late'), undefined);
    await ledger.at(new Date(stage.listening.clock.now().getTime() + 2 * DAY_MS).toISOString());
    // The sessions of the others have ended by then.
    const late = await find(await stage.join('owner'), 'day-late');
    assert.equal(late?.link, '/books');
    assert.ok(late && late.count >= 1);
  });

  test("of a merchant has nothing of the operator's, nor of another merchant", async () => {
    const merchant = await stage.join('owner', true);
    assert.deepEqual(
      (await inboxOf(merchant)).filter(({ isYours }) => isYours),
      [],
    );
    const cashier = await stage.join('cashier', true);
    assert.deepEqual(await inboxOf(cashier), []);
  });
});
