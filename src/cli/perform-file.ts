import { pipeline } from 'node:stream/promises';
import type { Static, TObject } from 'typebox';
import type { File, FileSchema } from '../operator/fields.ts';
import type { Operation } from '../operator/operations.ts';
import { checkTarget, writeWhole } from './file.ts';
import { withOperator, withService } from './open.ts';
import { printJson, say } from './output.ts';
import { performWith } from './perform.ts';

type Options = { readonly out?: string; readonly force?: boolean; readonly json?: boolean };

/** Runs a command whose operation answers with a file: written to `--out`, or to stdout. */
export async function performFile<Input extends TObject>(
  operation: Operation<Input, typeof FileSchema>,
  input: Static<Input>,
  { out, force = false, json }: Options,
): Promise<void> {
  if (out !== undefined) await checkTarget(out, force);
  const run = operation.effect === 'read' ? withService : runChange;
  await run(async (service) => {
    const { content } = await performWith(service, operation, input);
    if (out === undefined) return pipeline(piecesOf(content), process.stdout, { end: false });
    await writeWhole(out, piecesOf(content), force);
    if (json) printJson({ file: out });
    else say(`written to ${out}`);
  });
}

const runChange: typeof withService = (run) => withOperator(({ service }, config) => run(service, config));

async function* piecesOf(content: File['content']): AsyncGenerator<string | Buffer> {
  if (typeof content === 'string' || Buffer.isBuffer(content)) yield content;
  else yield* content;
}
