/**
 * `npm run soak [-- NAME] [--minutes M] [--seed S] [--async]`: checks for minutes or hours what the tests
 * check in seconds.
 * - `faults`: everything that can break breaks under load, and the books are compared with every answer;
 * - `absences`: the database goes away and comes back in every way, and the time until calls succeed is
 *   printed;
 * - `failover`: the primary is killed under load, its synchronous standby is promoted, and nothing
 *   acknowledged is lost; with `--async` the standby is asynchronous, and the lost calls are counted;
 * - `citus`: concurrent calls on a Citus cluster while its shards move and its workers are killed;
 * - `never-closed`: all that operators change, from a key to the version of PostgreSQL, under load;
 * - `model`: the answers of two processes are those of a plain model in some order of the calls.
 */
import { leavingNothing } from '../test/support/leave-nothing.ts';
import { type Options, readArguments } from './arguments.ts';
import { soakCitus } from './citus.ts';
import { soakFailover } from './failover.ts';
import { soakModel } from './model.ts';
import { soakNeverClosed } from './never-closed.ts';
import { soakAbsences, soakFaults } from './under-fire.ts';

const SOAKS: Readonly<Record<string, (options: Options) => Promise<void>>> = {
  faults: soakFaults,
  absences: soakAbsences,
  failover: soakFailover,
  'never-closed': soakNeverClosed,
  model: soakModel,
  citus: soakCitus,
};

const options = readArguments(process.argv.slice(2));
const soak = SOAKS[options.name];
if (!soak) throw new Error(`unknown soak ${options.name}: use one of ${Object.keys(SOAKS).join(', ')}`);
process.stdout.write(`soak ${options.name}: ${options.minutes} min, seed ${options.seed}\n`);
await leavingNothing(() => soak(options));
process.exit();
