import { MERCHANTS } from './merchants.ts';
import type { AnyOperation } from './operations.ts';
import { TOKENS } from './token-operations.ts';
import { USERS } from './users.ts';

/** Every operation of /operator/v1, in the order of its documentation. */
export const OPERATIONS: readonly AnyOperation[] = [...MERCHANTS, ...TOKENS, ...USERS];
