/**
 * `node test/citus/start.ts [DATABASE]`: runs a coordinator and two workers with a database (`scrip`)
 * until Ctrl-C, and prints their addresses. Leaves nothing behind.
 */
import { listenForStop } from '../../src/cli/signals.ts';
import { leavingNothing, temporaryFolder } from '../support/leave-nothing.ts';
import { createOnAll, startCitus } from './cluster.ts';

await leavingNothing(async () => {
  const database = process.argv[2] ?? 'scrip';
  const cluster = await startCitus(await temporaryFolder('scrip-citus-'));
  await createOnAll(cluster, database);
  process.stdout.write(`coordinator ${cluster.coordinator.url(undefined, database)}\n`);
  for (const worker of cluster.workers)
    process.stdout.write(`worker      ${worker.url(undefined, database)}\n`);
  // A listener for signals does not keep a process alive.
  const alive = setInterval(() => {}, 60_000);
  await listenForStop().asked;
  clearInterval(alive);
});
