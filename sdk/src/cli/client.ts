import { Scrip } from '../scrip.ts';
import type { CallOptions, Variant } from '../types.ts';
import { type Line, wrongUsage } from './command.ts';
import { readCredentials } from './credentials.ts';
import { say } from './output.ts';
import { wholeOf } from './parse.ts';

/** The client of a command, and how its calls are made. */
export type Session = {
  readonly variant: Variant;
  /** The client, whichever variant it speaks. */
  readonly scrip: Scrip<Variant>;
  readonly inA: Scrip<'a'> | null;
  readonly inB: Scrip<'b'> | null;
  readonly call: CallOptions;
};

const stopping = new AbortController();

/** Ends calls when the process is asked to stop; a second time it ends at once. */
export function listenForStop(): AbortSignal {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(130);
      stopping.abort();
    });
  }
  return stopping.signal;
}

/** @throws CommandError, UsageError */
export async function openSession(line: Line): Promise<Session> {
  const { variant, ...credentials } = await readCredentials(line);
  const seconds = wholeOf(line, 'timeout');
  const open = <V extends Variant>(one: V) => {
    try {
      return new Scrip({
        ...credentials,
        variant: one,
        onRetry: ({ error, delayMs }) => {
          if (process.stderr.isTTY) say(`${error.code}; trying again in ${Math.ceil(delayMs / 1000)} s`);
        },
      });
    } catch (error) {
      // What the client says about its options holds no value.
      return wrongUsage((error as Error).message);
    }
  };
  const [inA, inB] = variant === 'a' ? [open('a'), null] : [null, open('b')];
  const call = { signal: stopping.signal, ...(seconds !== undefined && { deadlineMs: seconds * 1000 }) };
  return { variant, scrip: (inA ?? inB) as Scrip<Variant>, inA, inB, call };
}

/**
 * The reference of something new. One that is made is told before anything is sent: whatever happens then, it can be asked
 * about and sent again.
 */
export function newReference(line: Line): string {
  const given = line.text('reference');
  if (given !== undefined) return given;
  const reference = crypto.randomUUID();
  say(`reference ${reference}`);
  return reference;
}
