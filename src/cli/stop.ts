/**
 * How a process is asked to stop: SIGTERM, Ctrl-C, or the terminal closing. From the moment that it
 * listens no signal ends it by itself, so that nothing it has started is left behind.
 */
export type Stop = {
  /** Settles at the first signal. */
  readonly asked: Promise<void>;
  /** Settles at the second one: whoever waits is not to wait any longer. */
  readonly hurried: Promise<void>;
  readonly isAsked: () => boolean;
};

/**
 * npm hands on the Ctrl-C that the terminal has already given to all: within this time two of them are one.
 */
const ECHO_MS = 500;

export function listenForStop(): Stop {
  const asked = Promise.withResolvers<void>();
  const hurried = Promise.withResolvers<void>();
  let firstAtMs: number | undefined;
  const ask = () => {
    const nowMs = performance.now();
    if (firstAtMs === undefined) {
      firstAtMs = nowMs;
      asked.resolve();
    } else if (nowMs - firstAtMs > ECHO_MS) {
      hurried.resolve();
    }
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, ask);
  return { asked: asked.promise, hurried: hurried.promise, isAsked: () => firstAtMs !== undefined };
}
