import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FLOAT, shortRun } from '../support/exactly-once.run.ts';
import { type Fault, startServer } from '../support/exactly-once.server.ts';
import { temporaryFolder } from '../support/leave-nothing.ts';

/** Porcupine, with a model of its own, agrees with the kit. It needs Go, and the module from its proxy. */

const SOURCES = fileURLToPath(new URL('../../conformance/porcupine/', import.meta.url));
const program = join(await temporaryFolder('scrip-porcupine-'), 'porcupine');

/** Builds the program. @returns why it cannot be built here, or false where it can */
function whyNot(): string | false {
  try {
    execFileSync('go', ['build', '-o', program, '.'], { cwd: SOURCES, stdio: 'ignore' });
    return false;
  } catch {
    return 'Go is not installed here, or cannot get Porcupine';
  }
}

const HISTORIES: readonly (readonly [fault: Fault | undefined, text: RegExp])[] = [
  [undefined, /^Porcupine explains all \d+ calls\n$/],
  ['does both of two updates at the same time', /^no order explains the answers of batch \d+\n$/],
  ['spends more than the float', /^(no order explains the answers of batch \d+|the float paid more .*)\n$/],
];

describe('Porcupine', { skip: whyNot() }, () => {
  for (const [fault, text] of HISTORIES) {
    it(fault ? `finds a server that ${fault}` : 'explains the history of a right server', async (t) => {
      // Without restarts, which leave so many calls open in a short run that the search takes long.
      const { baseUrl } = await startServer(t, FLOAT, fault);
      const { history } = await shortRun({ baseUrl });
      const { stdout, stderr, status } = spawnSync(program, [history], { encoding: 'utf8' });
      assert.match(stdout + stderr, text);
      assert.equal(status, fault ? 1 : 0);
    });
  }
});
