import type { Answer, Call } from './model.calls.ts';
import type { Model } from './model.ts';

/** A call and its answer. */
export type Sent = { readonly call: Call; readonly answer: Answer };

/** The states after concurrent calls, for each order in which the model gives exactly these answers. */
export function linearize(from: readonly Model[], sent: readonly Sent[], now: number): Model[] {
  let level = new Map<number, Map<string, Model>>([[0, new Map(from.map((state) => [state.key(), state]))]]);
  for (let done = 0; done < sent.length; done++) {
    const next = new Map<number, Map<string, Model>>();
    for (const [mask, states] of level) {
      for (const [at, { call, answer }] of sent.entries()) {
        if (mask & (1 << at)) continue;
        for (const state of states.values()) {
          const after = state.clone();
          if (!after.step(call, answer, now)) continue;
          const reached = next.get(mask | (1 << at)) ?? new Map<string, Model>();
          next.set(mask | (1 << at), reached.set(after.key(), after));
        }
      }
    }
    level = next;
  }
  return [...(level.get((1 << sent.length) - 1)?.values() ?? [])];
}
