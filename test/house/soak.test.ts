import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** The soak runs for hours, now and then: this shows in between that it still starts, breaks and compares. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Three seconds under load. The first fault of this seed kills a service. */
const SHORT = ['soak/run.ts', 'faults', '--minutes', '0.05', '--seed', '27'];

test('a soak of some seconds breaks something, and finds nothing wrong', async (t) => {
  const { stdout } = await promisify(execFile)(process.execPath, SHORT, { cwd: ROOT, signal: t.signal });
  const counted = new Map(
    [...stdout.matchAll(/^│ (.+?) +│ +(\d+) │$/gm)].map(([, name = '', count]) => [name, Number(count)]),
  );
  const faults = [...counted.keys()].filter((name) => name.startsWith('fault: '));
  assert.ok(faults.length > 0, stdout);
  for (const name of ['acknowledged', 'traces that the model was compared with', 'delivered at least once'])
    assert.ok((counted.get(name) ?? 0) > 0, `${name}\n${stdout}`);
});
