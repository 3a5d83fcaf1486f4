export { unopened } from './de.figures.ts';
export { faults, problems } from './de.problems.ts';
export { refusalOf } from './de.refusals.ts';
