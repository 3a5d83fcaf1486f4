import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findInstalled } from '../support/stand-in.ts';

/** The drill of docs/how-to/back-up.md, on a PostgreSQL server of the operator's own. */

const DRILL = fileURLToPath(new URL('../../deploy/pgbackrest/drill.sh', import.meta.url));

test('a server of its own is restored by pgBackRest up to what it archived', (t) => {
  const program = findInstalled(t, 'pgbackrest/usr/bin/pgbackrest', 'pgBackRest');
  if (program === undefined) return;
  if (process.getuid?.() !== 0 || !existsSync('/usr/lib/postgresql'))
    return t.diagnostic('the drill needs root, and PostgreSQL of Debian');
  const { PATH, HOME } = process.env;
  const { status, stdout, stderr } = spawnSync('sh', [DRILL], {
    env: { PATH: `${dirname(program)}:${PATH}`, HOME },
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /the drill passed\n$/);
});
