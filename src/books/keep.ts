import type { Actor, Operator, Service } from '../context.ts';
import { closeDays, type DayEnd } from './close.ts';
import { findFreeBooks } from './days.queries.ts';

/** Who closes days by the clock. */
const KEEPER: Actor = {
  kind: 'service',
  id: null,
  name: 'scrip',
  origin: 'background work',
  requestId: null,
  reason: null,
};

/**
 * Keeps the books: sweeps what has expired, seals slices, and closes the days that are due. Done by one
 * process at a time: another one finds them in use, and leaves them alone.
 */
export async function keepBooks(
  service: Service,
  dayEnds: readonly DayEnd[],
  stopping: () => boolean,
): Promise<void> {
  if ((await service.db.query(findFreeBooks())).length === 0) return;
  const operator: Operator = { service, actor: KEEPER };
  const { closed, waiting } = await closeDays(operator, { dayEnds, stopping });
  for (const { day, hash } of closed) service.log.info({ day, hash }, 'a day was closed');
  if (waiting) service.log.debug(waiting, 'the next day is not closed yet');
}
