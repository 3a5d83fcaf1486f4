import { approvals } from './approvals.ts';
import { batches } from './batches.ts';
import { books } from './books.ts';
import { claims } from './claims.ts';
import { holds } from './holds.ts';
import { rotations } from './rotation.ts';
import type { Protocol } from './search.ts';

export const PROTOCOLS: readonly Protocol[] = [claims, holds, batches, books, rotations, approvals];
