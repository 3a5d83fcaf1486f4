import Type from 'typebox';
import { CHECK_NAMES, examine, STATES } from '../monitor/doctor.ts';
import { reading, tableOf } from '../operation.ts';
import { SEE } from '../principal.ts';
import { NullableText, Text, Word } from '../schema.ts';

/** What `scrip doctor` finds, for people who do not sit at the machine. */

const check = reading({
  name: 'installation.check',
  summary: 'Check the installation, and say what to do',
  description: 'As `scrip doctor` does, by the process that answers.',
  path: '/installation/check',
  command: 'doctor',
  input: {},
  output: Type.Object({
    ok: Type.Boolean({ description: 'Nothing needs action. There may be warnings.' }),
    findings: Type.Array(
      Type.Object({ check: Word(CHECK_NAMES), state: Word(STATES), found: Text, advice: NullableText }),
    ),
  }),
  roles: SEE,
  async run({ service: { db, deployment } }) {
    const findings = await examine(await deployment(), db);
    return { ok: findings.every(({ state }) => state !== 'failure'), findings };
  },
});

export const INSTALLATION = tableOf(check);
