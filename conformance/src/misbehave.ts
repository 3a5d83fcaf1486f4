import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { answer, cutHalf, type Received, readCall, sendPage, sendResult } from './misbehave.calls.ts';
import { type Fault, Faults, randomBy } from './misbehave.faults.ts';
import { type Card, MemoryLedger, type Result } from './misbehave.ledger.ts';
import { parse } from './probe.ts';

/**
 * A server that misbehaves, against which a client in any language is run. It gives out tasks, treats their
 * requests badly, and compares the outcomes that the client reports with its own ledger.
 */

/** What the client has to do with a voucher. */
export type Task = {
  /**
   * `redeem`: redeem the amount, for sure. `decline`: the same, but the voucher has less. `give-up`: send the
   * redemption once; if the outcome is unknown, undo it.
   */
  readonly operation: 'redeem' | 'decline' | 'give-up';
  readonly reference: string;
  readonly code: string;
  readonly pin: string;
  readonly amount: number;
};

/** What the client believes of a task. */
const OUTCOMES = ['paid', 'refused', 'undone', 'unknown'] as const;
type Outcome = (typeof OUTCOMES)[number];

export type Verdict = {
  readonly calls: number;
  readonly requests: number;
  readonly faults: Readonly<Record<string, number>>;
  /** Vouchers from which more was taken than one payment. */
  readonly doubled: number;
  /** Tasks whose outcome the client does not know, or has not reported. */
  readonly unknown: number;
  /** Tasks whose outcome is not the one that the client reported. */
  readonly wrong: number;
  /** The references of some of them. */
  readonly examples: readonly string[];
};

export type Misbehaving = {
  readonly baseUrl: string;
  readonly keyId: string;
  readonly secret: string;
  readonly portalToken: string;
  /** Fulfilled when the client has reported the outcomes of all tasks. */
  readonly finished: Promise<Verdict>;
  /** The verdict as it is now. */
  judge(): Verdict;
  close(): void;
};

const CREDENTIALS = { keyId: 'key_misbehave', secret: 'misbehave-secret', portalToken: 'misbehave-token' };
const EXAMPLES_MAX = 10;
const SLOW_MS = 50;
const LATE_MS = 100;
const BODY_MAX_BYTES = 16 * 1024 * 1024;

/** Makes tasks, each with a voucher of its own. The references have characters that are easily spoiled. */
function tasksOf(calls: number, seed: number, ledger: MemoryLedger): (Task & { readonly card: Card })[] {
  const random = randomBy(seed);
  return Array.from({ length: calls }, (_, at) => {
    const kind = random();
    const operation = kind < 0.7 ? 'redeem' : kind < 0.85 ? 'give-up' : 'decline';
    const amount = Math.ceil(random() * 10_000) / 100;
    const digits = String(random()).slice(2, 6).padEnd(4, '0');
    const card: Card = {
      serialNumber: 100_000_000_000_000 + at,
      code: String(100_000_000_000 + at * 7),
      pin: digits,
      value: operation === 'decline' ? amount / 2 : amount * 3,
      balance: operation === 'decline' ? amount / 2 : amount * 3,
    };
    ledger.add(card);
    const reference = `Bon ${at}/ä€🎁 50%`;
    return { operation, reference, code: card.code, pin: card.pin, amount, card };
  });
}

/**
 * Starts the server.
 * @param port 0 for a free one
 */
export async function misbehave(calls: number, seed: number, port = 0): Promise<Misbehaving> {
  const ledger = new MemoryLedger();
  const judge = new Judge(tasksOf(calls, seed, ledger), ledger);
  const treatment = new Treatment(seed);
  let finish: (verdict: Verdict) => void = () => {};
  const finished = new Promise<Verdict>((resolve) => {
    finish = resolve;
  });
  const verdict = () => judge.verdict(treatment.requests, treatment.faults);

  const server = createServer(async (request, response) => {
    const body = await readBody(request);
    const { pathname: path } = new URL(request.url ?? '/', 'http://localhost');
    // The answers about tasks and outcomes are always right.
    if (path === '/tasks') return answer(response, 200, { tasks: judge.given() });
    if (path === '/outcomes') {
      if (!judge.report(parse(body)))
        return answer(response, 400, { message: `expected a list of {"reference", "outcome"}` });
      await treatment.untilQuiet();
      answer(response, 200, verdict());
      if (judge.isComplete) finish(verdict());
      return;
    }
    const call = readCall(ledger, CREDENTIALS, request, path, body);
    if ('refusal' in call) return answer(response, call.status, call.refusal);
    await treatment.treat(call, request, response);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...CREDENTIALS,
    finished,
    judge: verdict,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Compares what the client reports with the ledger. */
class Judge {
  readonly #tasks: readonly (Task & { readonly card: Card })[];
  readonly #ledger: MemoryLedger;
  readonly #outcomes = new Map<string, Outcome>();

  constructor(tasks: readonly (Task & { readonly card: Card })[], ledger: MemoryLedger) {
    this.#tasks = tasks;
    this.#ledger = ledger;
  }

  /** The tasks, as the client gets them. */
  given(): Task[] {
    return this.#tasks.map(({ card: _card, ...task }) => task);
  }

  /** Returns false for what is no list of outcomes. */
  report(outcomes: unknown): boolean {
    if (!Array.isArray(outcomes)) return false;
    for (const { reference, outcome } of outcomes) {
      if (!OUTCOMES.includes(outcome)) return false;
      this.#outcomes.set(reference, outcome);
    }
    return true;
  }

  get isComplete(): boolean {
    return this.#outcomes.size >= this.#tasks.length;
  }

  verdict(requests: number, faults: Verdict['faults']): Verdict {
    const doubled: string[] = [];
    const unknown: string[] = [];
    const wrong: string[] = [];
    for (const { reference, card, amount } of this.#tasks) {
      const taken = this.#ledger.inForceOn(card);
      const outcome = this.#outcomes.get(reference) ?? 'unknown';
      if (taken.length > 1 || (taken[0] ?? 0) > amount) doubled.push(reference);
      if (outcome === 'unknown') unknown.push(reference);
      else if ((outcome === 'paid') !== taken.length > 0) wrong.push(reference);
    }
    return {
      calls: this.#tasks.length,
      requests,
      faults,
      doubled: doubled.length,
      unknown: unknown.length,
      wrong: wrong.length,
      examples: [...doubled, ...unknown, ...wrong].slice(0, EXAMPLES_MAX),
    };
  }
}

/** Answers requests, or does what their faults say. */
class Treatment {
  readonly #faults: Faults;
  /** Effects that are still to come. */
  readonly #pending = new Set<Promise<unknown>>();
  #last: Result | undefined;
  requests = 0;

  constructor(seed: number) {
    this.#faults = new Faults(seed);
  }

  /** How often each fault was chosen. */
  get faults(): Verdict['faults'] {
    return Object.fromEntries([...this.#faults.counts].sort());
  }

  /** Waits for the effects that are still to come. */
  async untilQuiet(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  async treat(call: Received, { socket }: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests++;
    const fault = this.#faults.next(call.reference);
    if (fault === 'busy' || fault === 'too many') {
      const result = { statusCode: fault === 'busy' ? '91' : '97', data: null };
      return sendResult(response, call, result, { 'retry-after': '0' });
    }
    if (fault === 'late') this.#later(call);
    if (fault === 'late' || fault === 'cut before') return void socket.destroy();
    const earlier = this.#last;
    const result = this.#effectOf(call, fault);
    if (fault === 'silent') return;
    if (fault === 'cut after') return void socket.destroy();
    if (fault === 'cut half') return cutHalf(response, call, result);
    if (fault === 'bad gateway' || fault === 'page') return sendPage(response, fault === 'page' ? 200 : 502);
    if (fault === 'slow') await sleep(this.#faults.time(SLOW_MS));
    const headers = fault === 'wrong type' ? { 'content-type': 'text/html' } : undefined;
    sendResult(response, call, fault === 'mixed up' ? (earlier ?? result) : result, headers);
  }

  #effectOf(call: Received, fault: Fault | undefined): Result {
    const first = call.effect();
    if (call.name === 'redeem' && first.statusCode === '00') this.#last = first;
    return fault === 'twice' ? call.effect() : first;
  }

  #later(call: Received): void {
    const running = sleep(this.#faults.time(LATE_MS)).then(() => call.effect());
    this.#pending.add(running);
    void running.then(() => this.#pending.delete(running));
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > BODY_MAX_BYTES) throw new Error('a body is too large');
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}
