/**
 * `npm run soak [-- WHAT] [--minutes M] [--seed S] [--async]`: proves for minutes or hours what the tests
 * prove in seconds.
 * - `faults`: everything that can break breaks under load, and the books are held against every answer given;
 * - `absences`: the database goes and comes back in every way, and how long it then takes until calls are
 *   answered is told;
 * - `failover`: the primary is killed under load, its synchronous standby promoted, and nothing
 *   acknowledged is lost; with `--async` the standby is asynchronous, and what that loses is told;
 * - `citus`: races on a Citus cluster while its shards move and its workers are killed;
 * - `model`: the answers of two processes are those of some order of a plain model.
 */
import { leavingNothing } from '../test/leave-nothing.ts';
import { readArguments, type Wanted } from './arguments.ts';
import { soakCitus } from './citus.ts';
import { soakFailover } from './failover.ts';
import { soakModel } from './model.ts';
import { soakAbsences, soakFaults } from './under-fire.ts';

const SOAKS: Readonly<Record<string, (wanted: Wanted) => Promise<void>>> = {
  faults: soakFaults,
  absences: soakAbsences,
  failover: soakFailover,
  model: soakModel,
  citus: soakCitus,
};

const wanted = readArguments(process.argv.slice(2));
const soak = SOAKS[wanted.what];
if (!soak) throw new Error(`there is ${Object.keys(SOAKS).join(', ')}, and no ${wanted.what}`);
process.stdout.write(`soak ${wanted.what}: ${wanted.minutes} min, seed ${wanted.seed}\n`);
await leavingNothing(() => soak(wanted));
process.exit();
