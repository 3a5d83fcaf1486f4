import Type from 'typebox';
import { audit } from '../audit/audit.ts';
import { alone, changing, tableOf } from '../operation.ts';
import { Line, Text, Time } from '../schema.ts';

/**
 * Backups of the operator's own server, which its own tools make. They report each one, so that
 * `scrip doctor` and the metric know how old the last one is. The audit keeps the reports with their
 * authors: a false one would hide that a backup is missing.
 */

const note = changing({
  name: 'backup.note',
  title: 'Report a backup',
  summary: 'Report a backup of your own server that has just ended, for `scrip doctor` and the metric',
  path: '/backups',
  input: {
    place: Line(200, 'Where it is.', 's3://vault/pgbackrest'),
  },
  output: Type.Object({ endedAt: Time, place: Text }),
  roles: ['owner', 'operations'],
  approval: alone('It moves no money and changes no right.'),
  async run(caller, { place }) {
    const { db, clock } = caller.service;
    const endedAt = clock();
    const noted = { endedAt: endedAt.toISOString(), place };
    await db.transaction((tx) =>
      audit(tx, caller, { action: 'backup.note', subject: 'backup', after: noted }),
    );
    return { endedAt, place };
  },
});

export const OPERATIONS = tableOf(note);
