import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type InFlight, Rounds } from '../../src/db/rounds.ts';

/** When the calls of operations start. */

/** A queue whose calls end when the test says so, and record when they started. */
class Queue {
  waiting = 0;
  readonly #name: string;
  readonly #rounds: Rounds;
  readonly #log: string[];
  readonly #ends: (() => void)[] = [];

  constructor(name: string, rounds: Rounds, log: string[]) {
    this.#name = name;
    this.#rounds = rounds;
    this.#log = log;
  }

  add(operation: string, rows: number, isFull = false): void {
    this.waiting += rows;
    this.#rounds.enter(operation, this, isFull);
  }

  send(): InFlight | undefined {
    if (this.waiting === 0) return undefined;
    const rows = this.waiting;
    this.waiting = 0;
    this.#log.push(`${this.#name} ${rows}`);
    return { rows, ended: new Promise<void>((end) => this.#ends.push(end)) };
  }

  end(): void {
    this.#ends.shift()?.();
  }
}

/** Queues by their names, and the calls that were started. */
function open<Name extends string>(inFlightMax: number, ...names: readonly Name[]) {
  const rounds = new Rounds(inFlightMax);
  const log: string[] = [];
  const queues = Object.fromEntries(names.map((name) => [name, new Queue(name, rounds, log)]));
  return { queues: queues as Record<Name, Queue>, log };
}

/** Waits until all that can start has started. */
async function settle(): Promise<void> {
  for (let turns = 0; turns < 4; turns++) await turn();
}

/** More than a call may hold the others up. */
const LONG_MS = 1_000;

describe('a round', () => {
  // On a busy machine, the steps of a test take longer than a call may hold the others up.
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  test('starts after the requests that arrived together', async () => {
    const { queues, log } = open(1, 'a');
    queues.a.add('redeem', 1);
    queues.a.add('redeem', 2);
    assert.deepEqual(log, []);
    await settle();
    assert.deepEqual(log, ['a 3']);
  });

  test('starts at once with a full call', () => {
    const { queues, log } = open(1, 'a');
    queues.a.add('redeem', 128, true);
    assert.deepEqual(log, ['a 128']);
  });

  test('contains all buckets of an operation, and the next operation waits for all of them', async () => {
    const { queues, log } = open(1, 'find-1', 'find-2', 'claim-1');
    queues['find-1'].add('find', 10);
    queues['find-2'].add('find', 20);
    await settle();
    queues['claim-1'].add('claim', 5);
    queues['find-1'].end();
    await settle();
    assert.deepEqual(log, ['find-1 10', 'find-2 20']);
    queues['claim-1'].add('claim', 6);
    queues['find-2'].end();
    await settle();
    assert.deepEqual(log.slice(2), ['claim-1 11']);
  });

  test('is of each operation in turn: one that floods does not delay the others', async () => {
    const { queues, log } = open(1, 'redeem', 'balance', 'list');
    queues.redeem.add('redeem', 100);
    await settle();
    queues.balance.add('balance', 1);
    queues.redeem.add('redeem', 200);
    queues.list.add('list', 1);
    queues.balance.add('balance', 1);
    for (const queue of [queues.redeem, queues.balance, queues.redeem]) {
      queue.end();
      await settle();
    }
    assert.deepEqual(log, ['redeem 100', 'balance 2', 'redeem 200', 'list 1']);
  });

  test('starts beside one of its operation only if enough requests wait, and at once beside another', async () => {
    const { queues, log } = open(2, 'redeem', 'balance', 'list');
    queues.redeem.add('redeem', 100);
    await settle();
    queues.redeem.add('redeem', 49);
    await settle();
    assert.deepEqual(log, ['redeem 100']);
    queues.balance.add('balance', 1);
    await settle();
    assert.deepEqual(log, ['redeem 100', 'balance 1']);
    queues.list.add('list', 1);
    queues.balance.end();
    await settle();
    assert.deepEqual(log.slice(2), ['list 1']);
    queues.list.end();
    await settle();
    queues.redeem.add('redeem', 1);
    await settle();
    assert.deepEqual(log.slice(3), ['redeem 50']);
  });

  test('that takes long does not hold the others up', async () => {
    const { queues, log } = open(1, 'stuck', 'balance');
    queues.stuck.add('redeem', 10);
    await settle();
    queues.balance.add('balance', 1);
    await settle();
    assert.deepEqual(log, ['stuck 10']);
    mock.timers.tick(LONG_MS);
    await settle();
    assert.deepEqual(log, ['stuck 10', 'balance 1']);
    queues.balance.end();
    queues.stuck.end();
  });

  test('is followed by one with what its calls had no room for', async () => {
    const { queues, log } = open(1, 'redeem');
    queues.redeem.add('redeem', 10);
    await settle();
    queues.redeem.waiting = 3; // put back by the call, which must be repeated
    queues.redeem.end();
    await settle();
    assert.deepEqual(log, ['redeem 10', 'redeem 3']);
  });

  test('that was released late is not counted twice', async () => {
    const { queues, log } = open(1, 'stuck', 'balance', 'list');
    queues.stuck.add('redeem', 10);
    await settle();
    queues.balance.add('balance', 1);
    mock.timers.tick(LONG_MS);
    await settle();
    queues.stuck.end();
    await settle();
    queues.list.add('list', 1);
    await settle();
    assert.deepEqual(log, ['stuck 10', 'balance 1']);
    queues.balance.end();
    await settle();
    assert.deepEqual(log, ['stuck 10', 'balance 1', 'list 1']);
  });
});
