import { after } from 'node:test';

/** Closes what was opened for it at its end: a test, or all tests of a file. */
export type Scope = { after(undo: () => unknown): void };

/** The scope of all tests of a file. What was opened last is closed first. */
export function ofFile(): Scope {
  const undos: (() => unknown)[] = [];
  after(async () => {
    for (const undo of undos.reverse()) await undo();
  });
  return { after: (undo) => void undos.push(undo) };
}
