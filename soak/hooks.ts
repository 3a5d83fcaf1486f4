import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import type { Operator } from '../src/context.ts';
import type { Queries } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';
import { setLow } from '../src/merchants/floats.ts';
import { listFloats } from '../src/merchants/merchants.ts';
import { addEndpoint } from '../src/webhooks/endpoints.ts';
import type { EventType } from '../src/webhooks/outbox.ts';
import type { Merchant } from './load.ts';
import type { Random } from './random.ts';

/** A receiver of webhooks that fails as receivers do, and a check of the events that it received. */

/** `well` answers nearly all deliveries, `hanging` reads and never answers. */
type State = 'well' | 'failing' | 'hanging' | 'away';

export type EventReport = {
  readonly due: number;
  readonly delivered: number;
  /** Deliveries beside the first one of each event. */
  readonly again: number;
  readonly lost: string[];
  readonly invented: string[];
};

/** An event as an endpoint received it. */
type Got = { readonly id: string; readonly text: string; count: number };

/** The number of a hundred deliveries to a receiver that is `well`. */
const REFUSED = 2;
const UNANSWERED = 1;
/** The distance of a float from its warning level before the load begins. A few generations cross it. */
const LOW_MINOR = 10_00n;
const LOOK_MS = 200;
/**
 * Deliveries that are due later than this wait for their next attempt, or were written by a clock that was
 * ahead. Deliveries in progress end before.
 */
const FAR_SECONDS = 26;
const LOOKS = 900;

type Endpoint = { readonly id: number; readonly merchant: Merchant; readonly secret: string };

export class Hooks {
  readonly #random: Random;
  readonly #endpoints = new Map<string, Endpoint>();
  /** By endpoint, type and subject of the event. */
  readonly #got = new Map<string, Got[]>();
  readonly #wrong: string[] = [];
  #state: State = 'well';
  #port = 0;
  #server: Server | undefined;
  #changed: Promise<void> = Promise.resolve();
  #calm = false;

  private constructor(random: Random) {
    this.#random = random;
  }

  /** Creates an endpoint for all events and one for events of batches, for each merchant. */
  static async open(operator: Operator, merchants: readonly Merchant[], random: Random): Promise<Hooks> {
    const hooks = new Hooks(random);
    await hooks.#listen();
    const some: readonly EventType[] = ['voucher.batch.completed', 'voucher.batch.canceled'];
    for (const merchant of merchants) {
      for (const [path, events] of [
        [`/${merchant.id}/all`, null],
        [`/${merchant.id}/batches`, some],
      ] as const) {
        const url = `http://127.0.0.1:${hooks.#port}${path}`;
        const added = await addEndpoint(
          operator,
          { merchantId: merchant.id, url, events, full: false },
          true,
        );
        hooks.#endpoints.set(path, { ...added, merchant });
      }
    }
    return hooks;
  }

  /** Sets the warning level of each float so that the load soon crosses it. */
  async warn(operator: Operator, merchants: readonly Merchant[]): Promise<void> {
    for (const { id } of merchants) {
      const [float] = await listFloats(operator.service.db, id);
      await setLow(operator, id, 'USD', (float?.balance ?? 0n) - LOW_MINOR);
    }
  }

  async #listen(): Promise<void> {
    this.#server = createServer((request, response) => void this.#receive(request, response).catch(() => {}));
    await once(this.#server.listen(this.#port, '127.0.0.1'), 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Changes the state, after the changes that were requested before. */
  set(state: State): Promise<void> {
    this.#changed = this.#changed.then(() => this.#change(state));
    return this.#changed;
  }

  async #change(state: State): Promise<void> {
    if (state === this.#state) return;
    if (state === 'away') await this.stop();
    else if (this.#state === 'away') await this.#listen();
    this.#state = state;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    server?.closeAllConnections();
    await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request) text += chunk;
    if (this.#state === 'failing') return void response.writeHead(500).end();
    const die = this.#calm ? 100 : this.#random.below(100);
    if (this.#state === 'well' && die < REFUSED)
      return void response.writeHead(503, { 'retry-after': '1' }).end();
    this.#keep(request, text);
    if (this.#state === 'hanging') return;
    if (die < REFUSED + UNANSWERED) request.socket.destroy();
    else response.end();
  }

  /**
   * Keeps a delivery. One with a wrong signature, or another body under the same id, is a fault of the
   * service.
   */
  #keep({ url = '', headers }: IncomingMessage, text: string): void {
    const endpoint = this.#endpoints.get(url);
    const id = String(headers['webhook-id']);
    try {
      new Webhook(endpoint?.secret ?? '').verify(text, headers as Record<string, string>);
    } catch (error) {
      this.#wrong.push(`${url} ${id}: ${(error as Error).message}`);
      return;
    }
    const { type, data } = JSON.parse(text);
    const key = `${endpoint?.id} ${type} ${subjectOf(type, data)}`;
    const before = this.#got.get(key) ?? [];
    const same = before.find((got) => got.id === id);
    if (!same) this.#got.set(key, [...before, { id, text, count: 1 }]);
    else if (same.text === text) same.count++;
    else this.#wrong.push(`${key} ${id} came with two bodies`);
  }

  /** Waits until no delivery is left, and compares the events with the books. */
  async verify(owner: Queries): Promise<EventReport> {
    await this.set('well');
    this.#calm = true;
    for (let look = 0; look < LOOKS; look++) {
      // The minutes and hours between two attempts are skipped.
      await owner.query(sql`
        update scrip.webhook_deliveries set due_at = now()
        where state = 'PENDING' and due_at > now() + make_interval(secs => ${FAR_SECONDS})`);
      const waiting = sql`select from scrip.webhook_deliveries where state = 'PENDING' limit 1`;
      if ((await owner.query(waiting)).length === 0) break;
      await sleep(LOOK_MS);
    }
    return this.#compare(await listCauses(owner));
  }

  #compare(causes: readonly Cause[]): EventReport {
    const report = { due: 0, delivered: 0, again: 0, lost: [] as string[], invented: [...this.#wrong] };
    const left = new Map(this.#got);
    for (const { endpoint, type, subject, least, most, fact } of causes) {
      const key = `${endpoint} ${type} ${subject}`;
      const got = left.get(key) ?? [];
      left.delete(key);
      report.due += Math.max(least, Math.min(most, got.length));
      report.delivered += Math.min(most, got.length);
      report.again += got.reduce((sum, { count }) => sum + count - 1, 0);
      if (got.length < least) report.lost.push(`event ${key}`);
      if (got.length > most) report.invented.push(`event ${key} under ${got.length} ids`);
      for (const { text } of got) {
        const found = factOf(type, JSON.parse(text).data);
        if (fact !== null && found !== Number(fact))
          report.invented.push(`event ${key} has ${found}, not ${fact}`);
      }
    }
    for (const key of left.keys()) report.invented.push(`event ${key}`);
    return report;
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the fields of a delivery are what is checked.
type Data = any;

/** The id of the transaction or batch of an event; empty for a low float. */
function subjectOf(type: string, data: Data): string {
  if (type === 'redemption.updated') return data.cancellationTransaction.transactionId;
  return data.transactionId ?? '';
}

/** The amount of an event in minor units, or its quantity. */
function factOf(type: string, data: Data): number {
  if (type.startsWith('voucher.batch')) return data.quantity;
  return Math.round((type === 'redemption.updated' ? data.summary.originalAmount : data.amount) * 100);
}

type Cause = {
  readonly endpoint: number;
  readonly type: string;
  readonly subject: string;
  readonly least: number;
  readonly most: number;
  readonly fact: string | null;
};

/** The events that the books demand, for each endpoint that subscribes to them. */
function listCauses(owner: Queries): Promise<Cause[]> {
  return owner.query<Cause>(sql`
    with causes as (
      select merchant_id, case kind when 'REDEMPTION' then 'voucher.redeemed'
        else 'voucher.activated' end as type,
        id::text as subject, 1 as least, 1 as most, amount_minor::text as fact
      from scrip.journal
      where kind in ('REDEMPTION', 'ACTIVATION') and batch_id is null and original_id is null
      union all
      select merchant_id, 'redemption.updated', id::text, 1, 1, amount_minor::text
      from scrip.journal where kind = 'REDEMPTION_REVERSAL'
      union all
      select merchant_id, 'voucher.batch.' || lower(status::text), transaction_id::text, 1, 1, quantity::text
      from scrip.batches where status <> 'PROCESSING'
      union all
      -- Once, on the crossing. Money that comes back can take a float above its limit, to cross it again.
      select merchant_id, 'float.low', '', (balance_minor < low_minor)::int,
        (balance_minor < low_minor)::int + (
          select count(*)::int from scrip.journal r where r.kind = 'RELEASE' and r.credit_account = f.account_id
        ), null
      from scrip.floats f where low_minor is not null
    )
    select e.id as endpoint, c.type, c.subject, c.least, c.most, c.fact
    from causes c join scrip.webhook_endpoints e on e.merchant_id = c.merchant_id
      and (e.events is null or c.type = any (e.events))`);
}
