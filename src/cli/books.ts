import type { Command } from 'commander';
import { closing } from '../books/close.ts';
import { DAY_ENDS } from '../settlement/fees.ts';
import { addReport } from './books-report.ts';
import { say } from './output.ts';
import { parseDay } from './parse.ts';
import { performCommand } from './perform.ts';

/** Adds the commands of the books that stream, or have an exit status of their own. */
export function addBooks(books: Command): void {
  books
    .command('close')
    .description('close the days that are due, in order, and say why the next one is not')
    .option('--day <day>', 'the last day to close')
    .option('--json', 'print JSON')
    .action(close);
  addReport(books);
}

/** The exit status is 1 if the day is not closed, or if a check of a closed day failed. */
async function close(options: { json?: boolean; day?: string }): Promise<void> {
  const day = options.day === undefined ? undefined : parseDay(options.day, '--day');
  await performCommand(
    closing(DAY_ENDS),
    day === undefined ? {} : { day },
    options,
    ({ closed, waiting }) => {
      for (const each of closed) {
        const failed = each.failed.length > 0 ? `; it does not agree: ${each.failed.join(', ')}` : '';
        say(`${each.day} is closed: ${each.hash}${failed}`);
      }
      if (waiting) say(`not closed: ${waiting.reason}`);
      else if (closed.length === 0) say('nothing to close');
    },
    {
      end({ closed, waiting }) {
        if (day && waiting && waiting.day <= day) process.exitCode = 1;
        if (closed.some(({ failed }) => failed.length > 0)) process.exitCode = 1;
      },
    },
  );
}
