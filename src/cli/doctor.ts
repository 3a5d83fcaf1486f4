import type { Command } from 'commander';
import type { Config } from '../config.ts';
import { CONNECTIONS_MAX } from '../db/pool.ts';
import { keyFile } from '../keyring/file.ts';
import { isExposed } from '../keyring/store.ts';
import { examine, type Surroundings } from '../monitor/doctor.ts';
import { withService } from './open.ts';
import { numberOf, printJson, printTable, say } from './output.ts';
import { readVersion } from './version.ts';

/** Beside those for calls: background work, and the one that holds the embedded database open. */
const CONNECTIONS_BESIDE = 7;

export function registerDoctor(program: Command): void {
  program
    .command('doctor')
    .description(
      'check what a start and a night need, and say what to do; exit status 1 if something must be done',
    )
    .option('--json', 'print JSON')
    .action(run);
}

async function run(options: { json?: boolean }): Promise<void> {
  await withService(async (service, config) => {
    const findings = await examine(service, await surroundingsOf(config));
    const failures = findings.filter(({ state }) => state === 'failure').length;
    const warnings = findings.filter(({ state }) => state === 'warning').length;
    if (failures > 0) process.exitCode = 1;
    if (options.json) return printJson({ ok: failures === 0, findings });
    printTable(
      ['check', 'state', 'found'],
      findings.map(({ check, state, found, advice }) => [
        check,
        state === 'ok' ? 'ok' : state.toUpperCase(),
        advice === null ? wrapped(found) : [...wrapped(found), ...wrapped(`→ ${advice}`)],
      ]),
    );
    if (failures + warnings === 0) say('All is well.');
    else
      say(`${numberOf(failures, 'failure')}, ${numberOf(warnings, 'warning')}: the arrows say what to do.`);
  });
}

const LINE_MAX = 84;

function wrapped(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const line = lines.length === 0 ? word : `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && line.length <= LINE_MAX) lines[lines.length - 1] = line;
    else lines.push(word);
  }
  return lines;
}

async function surroundingsOf(config: Config): Promise<Surroundings> {
  const isFile = config.keys === undefined && config.keysFile === undefined;
  return {
    version: readVersion(),
    dataDir: config.databaseUrl === undefined ? config.dataDir : undefined,
    archiveDir: config.archiveDir,
    keyRing: {
      source: config.keys === undefined ? `the file ${keyFile(config).path}` : 'SCRIP_KEYS',
      isFile,
      isExposed: await isExposed(config),
    },
    connectionsMax: CONNECTIONS_MAX + CONNECTIONS_BESIDE,
  };
}
