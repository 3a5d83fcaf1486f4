import { Command } from 'commander';
import { leavingNothing } from '../test/support/leave-nothing.ts';
import { type Options, readOptions, withOptions } from './arguments.ts';
import { soakCitus } from './citus.ts';
import { soakFailover } from './failover.ts';
import { soakModel } from './model.ts';
import { soakNeverClosed } from './never-closed.ts';
import { soakAbsences, soakFaults } from './under-fire.ts';

const program = new Command('npm run soak --').description(
  'Check for minutes or hours what the tests check in seconds. Without a name: faults, for a minute.',
);

function add(name: string, summary: string, soak: (options: Options) => Promise<void>): Command {
  return withOptions(program.command(name).description(summary)).action(async (_given, command: Command) => {
    const options = readOptions(command);
    process.stdout.write(`soak ${name}: ${options.minutes} min, seed ${options.seed}\n`);
    await leavingNothing(() => soak(options));
  });
}

add(
  'faults',
  'break everything that can break under load, and compare the books with every answer',
  soakFaults,
);
add('absences', 'take the database away in every way, and print the time until calls succeed', soakAbsences);
add(
  'failover',
  'kill the primary under load, promote its standby, and find no call lost',
  soakFailover,
).option('--async', 'with an asynchronous standby: count the lost calls');
add('never-closed', 'change under load all that operators change, from a key to PostgreSQL', soakNeverClosed);
add('model', 'compare the answers of two processes with a plain model in some order of the calls', soakModel);
add('citus', 'call a Citus cluster while its shards move and its workers are killed', soakCitus);

const given = process.argv.slice(2);
await program.parseAsync(given.length > 0 ? given : ['faults'], { from: 'user' });
process.exit();
