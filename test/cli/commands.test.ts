import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Command } from 'commander';
import { type Operation, readDocument } from '../../console/src/described.ts';
import { commandOf } from '../../console/src/ui/command.ts';
import { describeApi } from '../../src/http/operator/openapi.ts';
import { OPERATOR_APIS } from '../../src/http/operator/routes.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { optionsOfAll } from '../../src/options.ts';
import { parseLine, readCommands } from '../support/program.ts';

/** The commands follow from the declarations of operations, and so does what the console shows of them. */

/** Options that belong to the output, not to the operation. */
const OUTPUT = ['--json', '--csv', '--limit', '--out', '--force'];

/** Operations whose command has options or arguments of its own. The list only shrinks. */
const EXCEPTIONS: readonly string[] = [
  'api-key.revoke',
  'batch.generate',
  'books.report',
  'books.report-csv',
  'books.verify',
];

const withCommand = OPERATIONS.filter(({ command }) => typeof command === 'string');

const optionsNow = (command: Command | undefined) =>
  (command?.options ?? []).map(({ long }) => long ?? '').filter((long) => !OUTPUT.includes(long));

describe('the command of an operation', () => {
  test('has exactly the fields of the operation as arguments and options, unless it is listed', async () => {
    const commands = await readCommands();
    const byWords = Map.groupBy(withCommand, ({ command }) => command);
    const differing = withCommand.filter((operation) => {
      const command = commands.get(String(operation.command));
      const alternatives = byWords.get(operation.command)?.filter(({ files }) => !files) ?? [];
      const options = optionsOfAll(alternatives.length > 0 ? alternatives : [operation]);
      const long = options.filter((each) => !each.isArgument).map(({ name }) => `--${name}`);
      const negated = optionsNow(command).filter((each) => !each.startsWith('--no-'));
      return (
        command?.registeredArguments.length !== options.filter((each) => each.isArgument).length ||
        negated.sort().join() !== long.sort().join()
      );
    });
    assert.deepEqual(differing.map(({ name }) => name).sort(), [...EXCEPTIONS].sort());
  });

  test('that a page shows is understood by the command line', async () => {
    const [operator] = OPERATOR_APIS;
    const { operations } = readDocument(describeApi(operator) as never, 'operator');
    let shown = 0;
    const failed: string[] = [];
    for (const operation of operations.values()) {
      const isListed = EXCEPTIONS.includes(operation.name);
      const line = isListed ? null : commandOf(operation, samplesOf(operation));
      if (line === null) continue;
      await parseLine(line).catch((error: Error) => failed.push(`${line}: ${error.message}`));
      shown++;
    }
    assert.deepEqual(failed, []);
    assert.ok(shown > 60, String(shown));
    await assert.rejects(parseLine('scrip product show DEFAULT --code X --json'), /unknown option/);
  });
});

const samplesOf = ({ fields }: Operation) =>
  Object.fromEntries(
    fields
      .filter(({ name, option }) => option !== null || !['reason', 'cursor', 'limit'].includes(name))
      .map(({ name, type, options, example }) => [
        name,
        type === 'boolean' ? 'true' : (options[0] ?? (example || "it's 1")),
      ]),
  );
