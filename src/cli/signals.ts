/** The signals that end a command: Ctrl-C, SIGTERM, or a closed terminal. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * A request by a signal to stop a process. From `listenForStop` on, no signal ends the process directly, so
 * that nothing it has started is left behind.
 */
export type Stop = {
  /** Resolves at the first signal. */
  readonly asked: Promise<void>;
  /** Resolves at the second signal: the user does not want to wait. */
  readonly urged: Promise<void>;
  readonly isAsked: () => boolean;
  /** The first signal, if there was one. */
  readonly signal: () => NodeJS.Signals | undefined;
};

/**
 * npm forwards the Ctrl-C that the terminal has already sent to all processes. Two signals within this time
 * count as one.
 */
const ECHO_MS = 500;

export function listenForStop(): Stop {
  const asked = Promise.withResolvers<void>();
  const urged = Promise.withResolvers<void>();
  let first: { readonly atMs: number; readonly signal: NodeJS.Signals } | undefined;
  const ask = (signal: NodeJS.Signals) => {
    const nowMs = performance.now();
    if (first === undefined) {
      first = { atMs: nowMs, signal };
      asked.resolve();
    } else if (nowMs - first.atMs > ECHO_MS) {
      urged.resolve();
    }
  };
  for (const signal of SIGNALS) process.on(signal, ask);
  return {
    asked: asked.promise,
    urged: urged.promise,
    isAsked: () => first !== undefined,
    signal: () => first?.signal,
  };
}

/**
 * Calls `end` at a signal as long as nothing else listens (`listenForStop`): nothing has begun that must be
 * finished.
 */
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
