import { Command } from 'commander';
import { NOUNS } from '../operations/nouns.ts';
import { type Adjusting, registerOperations } from './commands.ts';
import { nameIgnored, prepare, readVersion, settingsHelp, takeActor } from './usage.ts';

/** The program and its commands. A noun is loaded when its word is typed: no command waits for others. */

type Register = (program: Command) => void;

/** The commands that do more than perform an operation: those that wait, or that read or write files. */
const OWN: Readonly<Record<string, () => Promise<(noun: Command) => void>>> = {
  'api-key': async () => (await import('./api-key.ts')).addRevoke,
  keyring: async () => (await import('./keyring.ts')).addRotation,
  batch: async () => (await import('./batch.ts')).addOrders,
  voucher: async () => (await import('./voucher-bulk.ts')).addOwn,
  books: async () => (await import('./books.ts')).addBooks,
  backup: async () => (await import('./backup.ts')).addBackups,
  audit: async () => (await import('./audit.ts')).addVerify,
};

/** What the command line knows beside the operations of a noun. */
const ADJUSTING: Readonly<Record<string, () => Promise<Adjusting>>> = {
  user: async () => (await import('./user.ts')).USER,
};

/** A noun whose commands follow from the declarations of its operations. */
function derived(noun: string, about: string, load: (typeof NOUNS)[string]['load']): () => Promise<Register> {
  return async () => {
    const operations = load ? await load() : (await import('../operations/table.ts')).OPERATIONS;
    const [addOwn, adjusting] = [await OWN[noun]?.(), await ADJUSTING[noun]?.()];
    return (program) => registerOperations(program, noun, about, operations, addOwn, adjusting);
  };
}

const DERIVED = Object.entries(NOUNS).flatMap(([noun, { about, load }]) =>
  about === null ? [] : [[noun, derived(noun, about, load)] as const],
);

const COMMANDS: Readonly<Record<string, () => Promise<Register>>> = {
  serve: async () => (await import('./serve.ts')).registerServe,
  work: async () => (await import('./work.ts')).registerWork,
  migrate: async () => (await import('./db.ts')).registerMigrate,
  db: async () => (await import('./db.ts')).registerDb,
  ...Object.fromEntries(DERIVED),
  doctor: async () => (await import('./health.ts')).registerDoctor,
  probe: async () => (await import('./probe.ts')).registerProbe,
  bench: async () => (await import('./bench.ts')).registerBench,
  restore: async () => (await import('./backup.ts')).registerRestore,
  witness: async () => (await import('./witness.ts')).registerWitness,
  import: async () => (await import('./import.ts')).registerImport,
  reconcile: async () => (await import('./health.ts')).registerReconcile,
  status: async () => (await import('./health.ts')).registerStatus,
  completion: async () => (await import('./usage.ts')).registerCompletion,
};

/**
 * Creates the program with the commands of a word; with all of them for another word, since the help and the
 * error of an unknown command list them all.
 */
export async function createProgram(word = ''): Promise<Command> {
  const program = new Command('scrip')
    .description('Scrip: prepaid vouchers that carry money')
    .version(readVersion(), '--version', 'print the version')
    .addHelpText('after', settingsHelp);
  takeActor(program);
  nameIgnored(program);
  const isAlone = Object.hasOwn(COMMANDS, word) && word !== 'completion';
  const asked = isAlone ? COMMANDS[word] : undefined;
  for (const load of asked ? [asked] : Object.values(COMMANDS)) (await load())(program);
  prepare(program);
  return program;
}
