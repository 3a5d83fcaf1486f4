import { randomUUID } from 'node:crypto';
import type { Config } from '../config.ts';
import { CommandError, wrongUsage } from './output.ts';

/**
 * A till that calls a service from outside, with the API key of a merchant. `scrip probe` and `scrip bench`
 * measure with it. What it redeems, it gives back at once, so that only rows of the journal remain.
 */

/** The steps of a sale. */
export const STEPS = ['balance', 'redeem', 'reverse'] as const;
export type Step = 'order' | (typeof STEPS)[number];

export type Card = { readonly code: string; readonly pin: string };
type Answer = { readonly statusCode: string; readonly message: string; readonly data: unknown };

/** A step that was not answered `00`. The message names the step and the status code. */
export class StepFailed extends CommandError {}

/** A till waits no longer for an answer. */
const TIMEOUT_MS = 5_000;
/** What a card is worth, in the whole units of any currency; a sale takes one of them for a moment. */
const CARD_VALUE = 100;

const MONTH_LENGTH = 'YYYY-MM'.length;

/** How to make the merchant whose key the till has. */
export const CREATE =
  '`scrip merchant create --name Probe --permit update-redemption --float 10000` makes one';

const A = '/merchant-client/v2';
const B = '/api/v2';

/** Reports how long a step took. */
type Took = (step: Step, ms: number) => void;

export class Till {
  readonly #url: string;
  readonly #authorization: string;
  readonly #prefix: string;

  /**
   * @param prefix what the references of its cards and sales begin with
   * @throws CommandError if no API key is set
   */
  constructor(url: string, { keyId, secret }: Pick<Config, 'keyId' | 'secret'>, prefix: string) {
    if (keyId === undefined || secret === undefined)
      wrongUsage(`set SCRIP_KEY_ID and SCRIP_SECRET to the API key of a merchant for it: ${CREATE}`);
    this.#url = url;
    this.#authorization = `Basic ${Buffer.from(`${keyId}:${secret}`).toString('base64')}`;
    this.#prefix = prefix;
  }

  /**
   * Returns a card of its own, by its number. It is ordered once a month: until then, a repetition of the
   * order is answered with the same card.
   * @throws StepFailed
   */
  async card(number: number, now: Date): Promise<Card> {
    const reference = `${this.#prefix}${now.toISOString().slice(0, MONTH_LENGTH)}-${number}`;
    const order = { reference, quantity: 1, value: CARD_VALUE };
    const { vouchers } = (await this.#step('order', `${B}/vouchers`, order)) as { vouchers: [Card] };
    return vouchers[0];
  }

  /** Redeems one unit of a card, and gives it back. @throws StepFailed at the step that failed */
  async sell({ code, pin }: Card, took: Took): Promise<void> {
    const reference = `${this.#prefix}${randomUUID()}`;
    const reverse = { reference, amountUsed: 0 };
    const timed = async (step: Step, path: string, body: object) => {
      const begun = performance.now();
      await this.#step(step, `${A}${path}`, body);
      took(step, performance.now() - begun);
    };
    await timed('balance', '/balance', { code, pin });
    await timed('redeem', '/redeem', { code, pin, amount: 1, reference }).catch(async (error: unknown) => {
      // It may have been booked all the same. Then the unit goes back now.
      await this.call(`${A}/redemptions/update`, reverse).catch(() => undefined);
      throw error;
    });
    await timed('reverse', '/redemptions/update', reverse);
  }

  async #step(step: Step, path: string, body: object): Promise<unknown> {
    const { statusCode, message, data } = await this.call(path, body).catch((error: Error) => {
      throw new StepFailed(`${step}: ${error.message}`);
    });
    if (statusCode !== '00') throw new StepFailed(`${step}: ${statusCode} ${message}`);
    return data;
  }

  /** Sends a request. @throws CommandError if there is no answer of this API */
  async call(path: string, body?: object): Promise<Answer> {
    const none = (why: string) => new CommandError(`no answer (${why})`);
    const response = await fetch(`${this.#url}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: this.#authorization, 'content-type': 'application/json' },
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body && { body: JSON.stringify(body) }),
    }).catch((error: Error) => {
      const { code, message } = (error.cause ?? error) as NodeJS.ErrnoException;
      throw none(code ?? message);
    });
    const answer = (await response.json().catch(() => ({}))) as Partial<Answer>;
    if (typeof answer.statusCode !== 'string') throw none(`HTTP ${response.status}`);
    return answer as Answer;
  }
}
