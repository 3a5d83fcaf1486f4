import type { AnyOperation } from '../operation.ts';
import { approvalsOf } from './approvals.ts';
import { inboxOf } from './inbox.ts';
import { NOUNS } from './nouns.ts';

const loaded = await Promise.all(Object.values(NOUNS).map(({ load }) => load?.() ?? []));

/** Every operation of /operator/v1, in the order of its documentation. */
export const OPERATIONS: readonly AnyOperation[] = [
  ...new Set(loaded.flat()),
  ...approvalsOf(() => OPERATIONS),
  ...inboxOf(() => OPERATIONS),
];
