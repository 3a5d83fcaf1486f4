/**
 * A process that runs commands one after the other, each as in a process of its own. Loading the program
 * takes most of the time of a short command, and is done once here.
 */

export type Order = {
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  /** Printed to both streams when the command has ended. */
  readonly end: string;
};

const NODE = process.argv[0] ?? '';
const MAIN = new URL('../../src/main.ts', import.meta.url).href;
/** The exit status of Node if the main module awaits what can no longer happen. */
const UNSETTLED = 13;

let running: { readonly end: string; isSettled: boolean } | undefined;
let count = 0;

process.on('message', async ({ env, args, end }: Order) => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.argv = [NODE, MAIN, ...args];
  running = { end, isSettled: false };
  // Only the command keeps the process alive now. A connection that it leaves open keeps it from ending.
  process.channel?.unref();
  await import(`${MAIN}?${++count}`);
  running.isSettled = true;
});

process.on('beforeExit', () => {
  // The test has ended.
  if (!running || !process.connected) return;
  const { end, isSettled } = running;
  const status = isSettled ? Number(process.exitCode ?? 0) : UNSETTLED;
  running = undefined;
  process.exitCode = undefined;
  // Flushes the log.
  process.emit('exit', status);
  process.removeAllListeners('exit');
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1']) process.removeAllListeners(signal);
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error').write(end);
  process.channel?.ref();
  process.send?.(status);
});
