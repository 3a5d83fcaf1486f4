/**
 * Waits until the process is asked to stop: SIGTERM, Ctrl-C, or the terminal closing. A second Ctrl-C does not wait for
 * what was accepted.
 */
export function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    let asked = 0;
    const ask = (signal: NodeJS.Signals) => {
      asked++;
      if (asked === 1) resolve();
      else if (signal === 'SIGINT') process.exit(1);
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, ask);
  });
}
