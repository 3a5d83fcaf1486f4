import assert from 'node:assert/strict';
import type cluster from 'node:cluster';
import { EventEmitter } from 'node:events';
import { type TestContext, test } from 'node:test';
import { watchProcesses } from '../../src/cli/watchdog.ts';
import { createLogger } from '../../src/log.ts';

/** The time between two questions. */
const ASK_MS = 3_000;

/** A process that answers the questions of the first one for as long as its event loop turns. */
class Process extends EventEmitter {
  turns = true;
  readonly process: { readonly pid: number; kill(signal: string): void };
  readonly #waiting: string[] = [];

  constructor(pid: number, killed: string[]) {
    super();
    this.process = { pid, kill: (signal) => killed.push(`${pid} ${signal}`) };
  }

  isConnected() {
    return true;
  }

  send(question: string) {
    this.#waiting.push(question);
    if (this.turns) this.turn();
  }

  turn() {
    while (this.#waiting.shift()) this.emit('message', 'yes');
  }
}

/** Two processes under watch, a third one that begins to serve later, and which of them were killed. */
function watched(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const killed: string[] = [];
  const [one, two, later] = [1, 2, 3].map((pid) => new Process(pid, killed)) as [Process, Process, Process];
  const processes = Object.assign(new EventEmitter(), { workers: { one, two } });
  const log = createLogger('silent', { write() {} });
  const end = watchProcesses(log, processes as unknown as typeof cluster);
  const ask = (times: number) => {
    for (let time = 0; time < times; time++) t.mock.timers.tick(ASK_MS);
  };
  return { one, two, later, processes, killed, ask, end };
}

test('a process is killed after five questions without an answer, and one that answers late is not', (t) => {
  const { one, two, killed, ask } = watched(t);
  one.turns = false;
  two.turns = false;
  ask(5);
  assert.deepEqual(killed, []);
  two.turn();
  ask(1);
  assert.deepEqual(killed, ['1 SIGKILL']);
});

test('a process is watched from when it serves until it ends', (t) => {
  const { later, processes, killed, ask, end } = watched(t);
  later.turns = false;
  ask(10);
  processes.emit('listening', later);
  ask(6);
  assert.deepEqual(killed, ['3 SIGKILL']);
  processes.emit('exit', later);
  ask(10);
  assert.deepEqual(killed, ['3 SIGKILL']);
  processes.emit('listening', later);
  end();
  ask(10);
  assert.deepEqual(killed, ['3 SIGKILL']);
});
