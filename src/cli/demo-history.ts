import { type Actor, createService, type Service } from '../context.ts';
import { moveClock, restoreClock } from '../db/clock.ts';
import { openDatabase } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { DAYS, Story } from './demo-story.ts';
import { showProgress } from './progress.ts';

/** Returns the size of the history: the number of movements, and the last closed day. */
function findHistory(): Sql {
  return sql`
select (select count(*)::integer from journal) as movements,
  (select max(day)::text from book_closings) as until`;
}

type Progress = { readonly tell: (line: string) => void; readonly stopping: () => boolean };

/**
 * Fills an empty database with a history: merchants, products of several currencies, closed days, expiries,
 * settlements. It uses the operations that serve calls, and moves the clocks of the service and of the books
 * from day to day.
 * @param ownerUrl of the schema's owner
 * @param progress.tell receives lines for people
 * @param progress.stopping ends the history early; the days so far remain
 * @returns false if the database is not empty
 * @throws Error if the books are wrong at the end
 */
export async function fillHistory(
  service: Service,
  ownerUrl: string,
  actor: Actor,
  { tell, stopping }: Progress,
): Promise<boolean> {
  const wasKilled = await restoreClock(ownerUrl);
  const [empty] = await service.db.query(sql`
select 1 as empty
where not exists (select from merchants) and not exists (select from journal)
  and not exists (select from book_days)`);
  if (!empty) {
    if (wasKilled) tell(`a start was killed while it made the history, which ${await endOf(service)}`);
    return false;
  }
  tell(`filling the empty database with ${DAYS} days of history`);
  const began = performance.now();
  const clock = await moveClock(ownerUrl);
  const db = openDatabase(service.db.url, 'scrip-demo', { isPatient: true });
  const progress = showProgress(DAYS, 'days');
  try {
    const story = new Story(createService({ ...service, db, readDb: db }), clock, actor);
    await story.begin();
    for (let day = 0; day < DAYS && !stopping(); day++) {
      await story.play(day);
      progress.update(day + 1);
    }
    progress.stop();
    if (stopping()) {
      tell(`stopped while it made the history, which ${await endOf(service)}`);
      return true;
    }
    await story.prove();
    const [made] = await service.db.query<History>(findHistory());
    const seconds = ((performance.now() - began) / 1_000).toFixed(1);
    tell(`made ${DAYS} closed days with ${made?.movements} movements in ${seconds} s`);
    return true;
  } finally {
    progress.stop();
    await db.close();
    await clock.close();
  }
}

type History = { readonly movements: number; readonly until: string | null };

/** Returns the end of an interrupted history. It is never continued, since its days are complete. */
async function endOf({ db }: Service): Promise<string> {
  const [found] = await db.query<History>(findHistory());
  const end = found?.until ? `ends soon after ${found.until}` : 'has no closed day';
  return `${end} and stays so; for a whole one, start with an empty data folder`;
}
