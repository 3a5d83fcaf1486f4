import { print, table, whole } from './figures.ts';
import { type Given, numberOf } from './scenario.ts';
import { quantile, sorted } from './statistics.ts';

/**
 * Simulates a network of cells (docs/explanation/scale.md): each cell is a PostgreSQL server that has a range
 * of slots. Nothing is started. The costs were measured; arrivals, queues and failures are simulated. A
 * redemption is two transactions: the claim of its reference in the cell of the reference, then the booking
 * in the cell of the voucher. Times are in milliseconds.
 */

/**
 * What a call costs a database, in processor time: fitted to redemptions with claims on one server, with 1 to
 * 1,024 callers. `commitMs` is the wait for the log of the server and of its standby.
 */
type Costs = { readonly callMs: number; readonly requestMs: number; readonly commitMs: number };

const FRONT_MS = 0.06;
/** What passing on a request to the owner of a cell costs that process. */
const FRAME_MS = 0.01;
const HOP_MS = 0.2;
const CALL_ROWS_MAX = 128;

type Network = {
  readonly name: string;
  readonly perSecond: number;
  readonly seconds: number;
  readonly cells: number;
  readonly coresOfCell: number;
  readonly fronts: number;
  /** The processes that call one cell: all fronts, or some owners to which the fronts pass requests on. */
  readonly owners: number | undefined;
  readonly costs: Costs;
  /** Cell 0 is away from the first second on, until its standby has taken over. */
  readonly awayMs: number;
};

type Request = { readonly startsAt: number; steps: number; wasRefused: boolean };

/** Events in the order of their times: a binary heap. */
class Agenda {
  readonly #heap: { at: number; run: (now: number) => void }[] = [];

  add(at: number, run: (now: number) => void): void {
    const heap = this.#heap;
    let place = heap.push({ at, run }) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (this.#at(parent) <= at) break;
      this.#swap(place, parent);
      place = parent;
    }
  }

  /** Takes out the earliest event. */
  next(): { at: number; run: (now: number) => void } | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    heap[0] = last;
    for (let place = 0; ; ) {
      const [left, right] = [2 * place + 1, 2 * place + 2];
      const least = this.#at(right) < this.#at(left) ? right : left;
      if (this.#at(least) >= this.#at(place)) return first;
      this.#swap(place, least);
      place = least;
    }
  }

  #at(place: number): number {
    return this.#heap[place]?.at ?? Number.POSITIVE_INFINITY;
  }

  #swap(one: number, other: number): void {
    const heap = this.#heap;
    [heap[one], heap[other]] = [heap[other] as never, heap[one] as never];
  }
}

/** A process that does one thing after the other, such as a process of Node or a core. */
class Worker {
  freeAt = 0;

  /** Returns when work that arrives now is done. */
  work(now: number, ms: number): number {
    this.freeAt = Math.max(now, this.freeAt) + ms;
    return this.freeAt;
  }
}

type Done = (now: number) => void;

/** The calls of one operation from one process to one cell: one at a time, with all requests that wait. */
type Queue = { waiting: { done: Done; refuse: Done }[]; isCalling: boolean };

/** A PostgreSQL server, and the processes that call it. */
class Cell {
  readonly #cores: readonly Worker[];
  readonly #queues: readonly Queue[];
  readonly #network: Network;
  readonly #agenda: Agenda;
  busyMs = 0;
  calls = 0;
  rows = 0;
  awayUntil = 0;

  constructor(network: Network, agenda: Agenda) {
    this.#network = network;
    this.#agenda = agenda;
    this.#cores = Array.from({ length: network.coresOfCell }, () => new Worker());
    const processes = network.owners ?? network.fronts;
    this.#queues = Array.from({ length: processes * 2 }, () => ({ waiting: [], isCalling: false }));
  }

  /** Takes a request of an operation (0: claims, 1: bookings) from a process. */
  send(now: number, process: number, operation: number, done: Done, refuse: Done): void {
    const queue = this.#queues[process * 2 + operation] as Queue;
    queue.waiting.push({ done, refuse });
    if (!queue.isCalling) this.#call(now, queue);
  }

  #call(now: number, queue: Queue): void {
    const requests = queue.waiting.splice(0, CALL_ROWS_MAX);
    queue.isCalling = requests.length > 0;
    if (!queue.isCalling) return;
    if (now < this.awayUntil) {
      for (const { refuse } of requests) refuse(now);
      this.#call(now, queue);
      return;
    }
    const { callMs, requestMs, commitMs } = this.#network.costs;
    const ms = callMs + requestMs * requests.length;
    this.busyMs += ms;
    this.calls++;
    this.rows += requests.length;
    const core = this.#cores.reduce((one, other) => (other.freeAt < one.freeAt ? other : one));
    this.#agenda.add(core.work(now, ms) + commitMs + HOP_MS, (ended) => {
      // A call that was under way when the cell was lost has no known outcome: its requests are repeated.
      const isLost = now < this.awayUntil || ended < this.awayUntil;
      for (const { done, refuse } of requests) (isLost ? refuse : done)(ended);
      this.#call(ended, queue);
    });
  }
}

const random = (below: number) => Math.floor(Math.random() * below);

/** What a client waits before it repeats a refused request: 1 s by `Retry-After`, with jitter. */
const RETRY_MS = () => 500 + Math.random() * 1_000;

function simulate(network: Network) {
  const agenda = new Agenda();
  const cells = Array.from({ length: network.cells }, () => new Cell(network, agenda));
  const fronts = Array.from({ length: network.fronts }, () => new Worker());
  const owners = cells.map(() => Array.from({ length: network.owners ?? 0 }, () => new Worker()));
  const endsAt = network.seconds * 1_000;
  const took: number[] = [];
  const tookRefused: number[] = [];
  let asked = 0;

  const step = (now: number, request: Request, front: number): void => {
    const at = random(network.cells);
    const cell = cells[at] as Cell;
    const process = network.owners === undefined ? front : random(network.owners);
    const owner = owners[at]?.[process];
    const arrivesAt = owner ? owner.work(now + HOP_MS, FRAME_MS) : now;
    const done = (ended: number) => {
      request.steps++;
      const backAt = owner ? ended + HOP_MS : ended;
      if (request.steps < 2) return agenda.add(backAt, (later) => step(later, request, front));
      (request.wasRefused ? tookRefused : took).push(backAt - request.startsAt);
    };
    const refuse = (ended: number) => {
      request.wasRefused = true;
      agenda.add(ended + RETRY_MS(), (later) => step(later, request, front));
    };
    const send = (later: number) => cell.send(later, process, request.steps, done, refuse);
    agenda.add(arrivesAt, send);
  };
  const arrive = (now: number): void => {
    asked++;
    const front = random(network.fronts);
    const request = { startsAt: now, steps: 0, wasRefused: false };
    agenda.add((fronts[front] as Worker).work(now, FRONT_MS), (later) => step(later, request, front));
    const next = now - (Math.log(1 - Math.random()) * 1_000) / network.perSecond;
    if (next < endsAt) agenda.add(next, arrive);
  };
  agenda.add(0, arrive);
  const [first] = cells;
  if (network.awayMs > 0 && first)
    agenda.add(1_000, (now) => {
      first.awayUntil = now + network.awayMs;
    });
  // Requests that have no answer some seconds after the last arrival are in a queue that grows.
  const givesUpAt = endsAt + network.awayMs + 5_000;
  for (let event = agenda.next(); event && event.at < givesUpAt; event = agenda.next()) event.run(event.at);

  const busyMs = cells.reduce((sum, cell) => sum + cell.busyMs, 0);
  const calls = cells.reduce((sum, cell) => sum + cell.calls, 0);
  const inCalls = cells.reduce((sum, cell) => sum + cell.rows, 0);
  return { asked, took: sorted(took), tookRefused: sorted(tookRefused), busyMs, inCall: inCalls / calls };
}

export async function run(given: Given): Promise<void> {
  const shape = {
    perSecond: numberOf(given, 'rate'),
    seconds: numberOf(given, 'seconds'),
    cells: numberOf(given, 'cells'),
    coresOfCell: numberOf(given, 'cores'),
    fronts: numberOf(given, 'fronts'),
    costs: {
      callMs: numberOf(given, 'call') / 1_000,
      requestMs: numberOf(given, 'request') / 1_000,
      commitMs: numberOf(given, 'commit'),
    },
  };
  const owners = numberOf(given, 'owners');
  const networks: readonly Network[] = [
    { name: 'every front calls every cell', ...shape, owners: undefined, awayMs: 0 },
    { name: `${owners} owners for each cell`, ...shape, owners, awayMs: 0 },
    { name: 'the same, a cell is away for 1 s', ...shape, owners, awayMs: 1_000 },
  ];
  const head = [
    'network',
    'in a call',
    'busy cores',
    'answered',
    'p50 ms',
    'p99 ms',
    'repeated',
    'their p99 ms',
  ];
  const rows = networks.map((network) => {
    const { asked, took, tookRefused, busyMs, inCall } = simulate(network);
    const answered = took.length + tookRefused.length;
    const share = (count: number) => `${((count / asked) * 100).toFixed(2)} %`;
    return [
      network.name,
      inCall.toFixed(1),
      whole(busyMs / (network.seconds * 1_000)),
      share(answered),
      quantile(took, 0.5).toFixed(1),
      quantile(took, 0.99).toFixed(1),
      share(tookRefused.length),
      tookRefused.length > 0 ? whole(quantile(tookRefused, 0.99)) : '–',
    ];
  });
  print(table(head, rows));
}
