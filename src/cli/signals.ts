/** What a signal does as long as a command does not listen for it (`listenForStop`). */

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Calls `end` at a signal as long as nothing else listens: nothing has begun that must be finished. */
export function endOnSignal(end: () => Promise<void>): void {
  for (const signal of SIGNALS)
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) void end();
    });
}

/** Runs a call that blocks, which could not hear a signal: meanwhile one ends the process directly. */
export function blocking<Result>(call: () => Result): Result {
  const listeners = SIGNALS.flatMap((signal) =>
    process.listeners(signal).map((listener) => ({ signal, listener })),
  );
  for (const { signal, listener } of listeners) process.off(signal, listener);
  try {
    return call();
  } finally {
    for (const { signal, listener } of listeners) process.on(signal, listener);
  }
}
