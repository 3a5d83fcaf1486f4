import { PROBLEM_STATUSES } from '../../src/http/operator/problems.ts';
import { type ProblemCode, TITLES } from '../../src/problem.ts';

/** The problems of the operator API, in Markdown. */
export function problemsText(): string {
  return [
    '| code | status | meaning |',
    '| --- | --- | --- |',
    ...Object.entries(TITLES).map(
      ([code, title]) => `| \`${code}\` | ${PROBLEM_STATUSES[code as ProblemCode]} | ${title}. |`,
    ),
  ].join('\n');
}
