/**
 * How a process is asked to stop: SIGTERM, Ctrl-C, or a closed terminal. Once it listens, no signal
 * ends it by itself, so that nothing it has started is left behind.
 */
export type Stop = {
  /** Resolves at the first signal. */
  readonly asked: Promise<void>;
  /** Resolves at the second signal: the caller does not want to wait. */
  readonly urged: Promise<void>;
  readonly isAsked: () => boolean;
};

/**
 * npm passes on the Ctrl-C that the terminal has already sent to all processes. Two within this time
 * are one.
 */
const ECHO_MS = 500;

export function listenForStop(): Stop {
  const asked = Promise.withResolvers<void>();
  const urged = Promise.withResolvers<void>();
  let firstAtMs: number | undefined;
  const ask = () => {
    const nowMs = performance.now();
    if (firstAtMs === undefined) {
      firstAtMs = nowMs;
      asked.resolve();
    } else if (nowMs - firstAtMs > ECHO_MS) {
      urged.resolve();
    }
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, ask);
  return { asked: asked.promise, urged: urged.promise, isAsked: () => firstAtMs !== undefined };
}
