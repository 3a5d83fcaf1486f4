import Type from 'typebox';
import { CHECK_NAMES, examine } from '../monitor/doctor.ts';
import { STATES } from '../monitor/findings.ts';
import { reading, tableOf } from '../operation.ts';
import { SEE } from '../principal.ts';
import { Nullable, NullableText, Text, Word } from '../schema.ts';

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
      Type.Object({
        check: Word(CHECK_NAMES),
        state: Word(STATES),
        found: Text,
        advice: NullableText,
        foundCode: Type.String({ description: 'The name of what was found, for other languages.' }),
        adviceCode: Nullable(Type.String({ description: 'The name of the advice.' })),
        values: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()]), {
          description: 'What the sentences of that name are filled with.',
        }),
      }),
    ),
  }),
  roles: SEE,
  async run({ service: { db, deployment } }) {
    const findings = await examine(await deployment(), db);
    return { ok: findings.every(({ state }) => state !== 'failure'), findings };
  },
});

export const OPERATIONS = tableOf(check);
