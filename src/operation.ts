import type { Static, TObject, TSchema } from 'typebox';
import type { Operator } from './context.ts';
import type { PortalRole, Principal, Role } from './principal.ts';

/**
 * The declaration of operations (docs/reference/operator-api.md). Each operation is declared once. The routes
 * of /operator/v1 and /portal/v1 and their OpenAPI documents are made from these declarations. The command
 * line performs the same functions.
 */

/**
 * `plain`: the role is sufficient. `step-up`: a second factor within five minutes. `four-eyes`: another
 * person approves.
 */
type Risk = 'plain' | 'step-up' | 'four-eyes';

/**
 * `read` changes nothing. `change` runs in one transaction, together with its Idempotency-Key and its entry
 * in the audit. `outside` calls something outside the database, or manages its own transactions.
 */
type Effect = 'read' | 'change' | 'outside';

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** The caller of an operation: an operator, as the core needs it, and the principal behind it. */
export type Caller = Operator & {
  readonly principal: Principal;
  /**
   * The user who approved the proposal and receives the answer. Null for the machine; undefined without an
   * approval.
   */
  readonly checkerId?: number | null;
};

export type Operation<Input extends TObject = TObject, Output extends TSchema = TSchema> = {
  /** A noun and a verb, such as `merchant.suspend`. */
  readonly name: string;
  /** One line. */
  readonly summary: string;
  readonly description?: string;
  /** A path below /operator/v1 or /portal/v1. A parameter such as `:id` is a field of the input. */
  readonly method: Method;
  readonly path: string;
  /** The words of the command that performs the operation, or the reason why there is none. */
  readonly command: string | { readonly none: string };
  readonly input: Input;
  /** A property with the option `secret: true` is returned once, and never stored. */
  readonly output: Output;
  readonly roles: readonly (Role | PortalRole)[];
  readonly risk: Risk;
  /**
   * Returns the risk if it depends on the input, such as an amount above a limit. It is never below `risk`.
   */
  readonly riskOf?: (caller: Caller, input: Static<Input>) => Promise<Risk>;
  /** The action in the audit; null if nothing changes. */
  readonly audit: string | null;
  readonly effect: Effect;
  /** 200 by default. */
  readonly status?: 200 | 201 | 202;
  /** The media types of the file that is returned instead of JSON. */
  readonly files?: readonly string[];
  /**
   * Whether the operation reads so much that only one such operation runs at a time, apart from quick reads.
   */
  readonly isHeavy?: boolean;
  /** The largest body that the operation takes, if it is above the usual limit. */
  readonly bodyMaxBytes?: number;
  run(caller: Caller, input: Static<Input>): Promise<Static<Output>>;
};

/** Defines an operation with its types inferred. */
export function operation<Input extends TObject, Output extends TSchema>(
  definition: Operation<Input, Output>,
): Operation<Input, Output> {
  return definition;
}

type Defaults = 'risk' | 'audit' | 'effect';

/** Defines an operation that changes nothing. */
export function reading<Input extends TObject, Output extends TSchema>(
  definition: Omit<Operation<Input, Output>, Defaults>,
): Operation<Input, Output> {
  return { risk: 'plain', audit: null, effect: 'read', ...definition };
}

/** Defines an operation that changes something, under its own name in the audit. */
export function changing<Input extends TObject, Output extends TSchema>(
  definition: Omit<Operation<Input, Output>, Defaults> & Partial<Pick<Operation<Input, Output>, Defaults>>,
): Operation<Input, Output> {
  return { risk: 'plain', audit: definition.name, effect: 'change', ...definition };
}

/**
 * An operation of a table. Only the operation itself knows its types, so its input is checked before it runs.
 */
export type AnyOperation = Operation;

/** Makes a table of operations. The table does not keep their types. */
export function tableOf(...operations: readonly { readonly name: string }[]): readonly AnyOperation[] {
  return operations as unknown as readonly AnyOperation[];
}
