import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Admission } from './admission.ts';

/** A call that has not gone in yet, and how to refuse it. */
export type Call = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse<IncomingMessage> & { req: IncomingMessage };
  readonly refuse: () => void;
};

/** Of a burst that became a flood so many still go in: few enough to be answered soon after those inside. */
const KEPT = 64;

/**
 * Where a burst waits for room, the first to come the first to go in. It waits out here, where nothing of it has been worked on: as soon
 * as more come than a burst it is a flood, and nearly all of them can still be refused, rather than be answered late.
 */
export class Burst {
  readonly #admission: Admission;
  readonly #serve: RequestListener;
  #waiting: Call[] = [];
  #isFilling = false;

  constructor(admission: Admission, serve: RequestListener) {
    this.#admission = admission;
    this.#serve = serve;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Takes a call in that waits, if one more may. */
  add(call: Call): boolean {
    if (this.#waiting.length >= this.#admission.burst) return false;
    this.#waiting.push(call);
    this.#admission.onLeave = () => this.#fillSoon();
    return true;
  }

  /** Ends it: the calls that came too late. */
  end(): readonly Call[] {
    this.#admission.takeBurst();
    return this.#waiting.splice(KEPT);
  }

  /** Once a turn: those who go in are counted inside only a moment later. */
  #fillSoon(): void {
    if (this.#isFilling) return;
    this.#isFilling = true;
    setImmediate(() => {
      this.#isFilling = false;
      this.#fill();
    });
  }

  #fill(): void {
    const some = this.#waiting.splice(0, this.#admission.room);
    this.#admission.takeBurst(some.length);
    for (const { request, response, refuse } of some) {
      // Whoever is gone is not worked for; the access log tells of it.
      if (response.destroyed) refuse();
      else this.#serve(request, response);
    }
    if (this.isEmpty) this.#admission.onLeave = undefined;
  }
}
