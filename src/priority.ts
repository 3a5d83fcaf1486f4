import { getPriority, setPriority } from 'node:os';

/**
 * Lowers the priority of this process; on Linux, of this thread. A process that `nice` or its unit has put
 * lower already keeps its priority: only privileged accounts may raise it. A refusal is ignored, since
 * nothing depends on the priority but the speed of others.
 * @param nice from 1 to 19; higher values have a lower priority
 */
export function lowerPriority(nice: number): void {
  try {
    if (getPriority() < nice) setPriority(nice);
  } catch {
    // The system, a container for example, does not permit it.
  }
}

/** Lower than that of the calls of tills, in case both want the same core. */
const THREAD_NICE = 5;

/** Lowers the priority of this thread, if a thread of this system has its own. */
export function lowerThread(): void {
  if (process.platform === 'linux') lowerPriority(THREAD_NICE);
}
