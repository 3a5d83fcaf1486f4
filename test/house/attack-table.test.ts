import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Attack, attackTable } from '../support/attack-table.ts';

test('the table of attacks begins with what is broken, and counts', () => {
  const attacks: readonly Attack[] = [
    { file: 'people.attacks.test.ts', name: 'a code works once', outcome: 'held' },
    { file: 'backup.attacks.e2e.test.ts', name: 'a changed file is refused', outcome: 'not tried' },
    { file: 'http.attacks.growth.test.ts', name: 'a long body takes no time', outcome: 'broken' },
  ];
  assert.equal(
    attackTable(attacks),
    [
      'broken     http.growth  a long body takes no time',
      'not tried  backup       a changed file is refused',
      'held       people       a code works once',
      '3 attacks: 1 held, 1 broken, 1 not tried',
      '',
    ].join('\n'),
  );
});
