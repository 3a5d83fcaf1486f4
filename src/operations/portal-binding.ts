import type { TObject, TSchema } from 'typebox';
import { type AnyOperation, alone, type Caller, type Operation } from '../operation.ts';
import type { PortalRole } from '../principal.ts';
import { notFound, Problem } from '../problem.ts';
import { Input } from '../schema.ts';

/** The binding of the operator's operations to a merchant's portal. */

export const ALL: readonly PortalRole[] = [
  'owner',
  'finance',
  'operations',
  'cashier',
  'developer',
  'viewer',
];
export const MONEY: readonly PortalRole[] = ['owner', 'finance', 'operations', 'viewer'];
export const FINANCE: readonly PortalRole[] = ['owner', 'finance'];
export const ORDER: readonly PortalRole[] = ['owner', 'operations'];
export const TEAM: readonly PortalRole[] = ['owner'];
export const CONNECT: readonly PortalRole[] = ['owner', 'developer'];

export const NO_COMMAND = { none: 'the portal belongs to merchants, and the command line to the operator' };

export const ownIdOf = ({ principal }: Caller) => {
  if (principal.merchantId === null) throw new Problem('forbidden');
  return String(principal.merchantId);
};

const OF_MERCHANT = alone('The people of a merchant need no approval of the operator.');

type Binding = {
  readonly path: string;
  readonly roles: readonly PortalRole[];
  /**
   * The subject of the operation, which is named by an id. `of` returns its merchant, or undefined if it does
   * not exist.
   */
  readonly owner?: {
    readonly noun: string;
    readonly field: string;
    of(caller: Caller, id: string): Promise<string | number | null | undefined>;
  };
  /** The field that contains the merchant. */
  readonly merchant?: string;
};

/** Binds an operation of the operator to the merchant of its caller. */
export function bound<Fields extends TObject, Output extends TSchema>(
  original: Operation<Fields, Output>,
  { path, roles, owner, merchant }: Binding,
): AnyOperation {
  const { input, run, ...rest } = original as unknown as AnyOperation;
  const properties = Object.fromEntries(
    Object.entries(input.properties).filter(([name]) => name !== merchant),
  );
  return {
    ...rest,
    // A merchant's people do not approve each other's proposals.
    approval: rest.approval && OF_MERCHANT,
    risk: rest.risk === 'four-eyes' ? 'step-up' : rest.risk,
    path,
    roles,
    command: NO_COMMAND,
    input: Input(properties) as TObject,
    async run(caller, given: Record<string, unknown>) {
      const own = ownIdOf(caller);
      if (owner) {
        const id = String(given[owner.field]);
        if (String(await owner.of(caller, id)) !== own) throw notFound(`${owner.noun} ${id}`);
      }
      return run(caller, merchant === undefined ? given : { ...given, [merchant]: own });
    },
  };
}
