import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../soak/process.ts';
import { Installation } from '../support/installation.ts';
import { openShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

/** The service, killed behind tills of the portal that do all that a cashier may. */

const TILLS = 12;
const BLANKS = 500;

type Card = { readonly serialNumber: number; readonly code: string; readonly pin: string };

/** What the till knows of a booking. */
type Booked = { readonly transactionId: string; readonly balance: number };

class Step {
  readonly verb: string;
  readonly body: object;
  answer: Booked | undefined;

  constructor(verb: string, body: object) {
    this.verb = verb;
    this.body = body;
  }
}

/** What a cashier does with a card, from its sale to the cash-out, and with one that is sold by mistake. */
function storyOf(name: string, { serialNumber, code, pin }: Card, mistaken: Card): Step[] {
  const sold = (card: number, value: number, reference: string) =>
    new Step('activate', { serialNumber: String(card), value, reference });
  return [
    sold(serialNumber, 20, `${name}-sold`),
    new Step('redeem', { code, pin, amount: 8, reference: `${name}-sale` }),
    new Step('correct', { reference: `${name}-sale`, amount: 6 }),
    new Step('refund', { reference: `${name}-sale`, amount: 1, refundReference: `${name}-refund` }),
    new Step('cash-out', { code, pin, reference: `${name}-cash` }),
    sold(mistaken.serialNumber, 5, `${name}-mistake`),
    new Step('void', { reference: `${name}-mistake` }),
  ];
}

/** Sends requests with the token of a cashier, again as long as a busy machine declines them. */
function tillOf(url: string, token: string): (step: Step) => Promise<Booked> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return async ({ verb, body }) => {
    for (;;) {
      const init = { method: 'POST', headers, body: JSON.stringify(body) };
      const response = await fetch(`${url}/portal/v1/till/${verb}`, init);
      const answer = (await response.json()) as {
        transaction: Pick<Booked, 'transactionId'>;
        balance: number;
      };
      const { transaction, balance } = answer;
      if (response.status === 200) return { transactionId: transaction.transactionId, balance };
      assert.equal(response.status, 503, `${verb}: ${JSON.stringify(answer)}`);
      await sleep(20);
    }
  };
}

/** The movements of a story, and the amounts that they move. */
const MOVEMENTS = {
  ACTIVATION: [20, 5],
  CANCELLATION: [5],
  CASH_OUT: [15],
  REDEMPTION: [8, 6],
  REDEMPTION_REVERSAL: [8],
  REFUND: [1],
};

test('whatever a till has sent when the service is killed is booked once, and the till gets its first answer', async (t) => {
  const installation = await Installation.make(t);
  Object.assign(installation.settings, {
    SCRIP_PORT: String(await freePort()),
    SCRIP_LOG_LEVEL: 'fatal',
  });
  const url = await installation.serve();
  const { merchantId, call } = await openShop(installation, url, '--permit', 'update-redemption');
  await installation.json`product set DEFAULT --cash-out-below 16`;
  const { token } = await installation.json`token create --role cashier --merchant ${merchantId}`;
  await call('/vouchers', { reference: 'blanks', quantity: BLANKS, value: null });
  const blanks = await until('the cards are produced', async () => {
    const { data } = await call('/vouchers/blanks');
    return data['status'] === 'COMPLETED' && (data['vouchers'] as Card[]);
  });
  const floatOf = async () => (await installation.json`float show --merchant ${merchantId}`)[0].balance;
  const before = await floatOf();

  const send = tillOf(url, token);
  const stories: Step[][] = [];
  let onAnswer = () => {};
  /** Works until the service is gone: the last request has no answer, and an unknown outcome. */
  const work = async () => {
    for (;;) {
      const [card, mistaken] = [blanks.pop(), blanks.pop()];
      assert.ok(card && mistaken);
      const story = storyOf(`story-${stories.length}`, card, mistaken);
      stories.push(story);
      for (const step of story) {
        step.answer = await send(step).catch((error) => {
          assert.ok(error instanceof TypeError || error instanceof SyntaxError, error);
          return undefined;
        });
        if (!step.answer) return;
        onAnswer();
      }
    }
  };
  for (const kill of [() => installation.stop('SIGKILL'), () => installation.crash()]) {
    // In the middle of work, however slow the machine is.
    const enough = Promise.withResolvers<void>();
    let answers = 0;
    onAnswer = () => {
      if (++answers === 6 * TILLS) enough.resolve();
    };
    const working = Promise.all(Array.from({ length: TILLS }, work));
    await Promise.race([enough.promise, working]);
    await kill();
    await working;
    await installation.serve();
  }
  // All of them are sent again, and those stories that the crash has cut are told to their end.
  await Promise.all(
    stories.map(async (story) => {
      for (const step of story) {
        const again = await send(step);
        assert.deepEqual(again, step.answer ?? again, JSON.stringify(step));
      }
    }),
  );
  const rows = await installation.query<{ kind: string; count: number; amount: number }>(`
select kind::text, count(*)::integer, (sum(amount_minor) / 100)::integer as amount from scrip.journal
where merchant_id = ${merchantId} and serial_number is not null and batch_id is null group by kind`);
  assert.deepEqual(
    Object.fromEntries(rows.map(({ kind, count, amount }) => [kind, [count, amount]])),
    Object.fromEntries(
      Object.entries(MOVEMENTS).map(([kind, amounts]) => [
        kind,
        [amounts.length, amounts.reduce((sum, each) => sum + each)].map((each) => each * stories.length),
      ]),
    ),
  );
  assert.equal(await floatOf(), before - 20 * stories.length);
  assert.equal((await installation.json`reconcile`).ok, true);
});
