import type { Static, TObject, TSchema } from 'typebox';
import type { Operator } from '../context.ts';
import type { PortalRole, Principal, Role } from './principal.ts';

/**
 * The form in which every operation is declared once (docs/reference/operator-api.md). From these
 * declarations come the routes of /operator/v1 and /portal/v1 and their OpenAPI documents; the command
 * line performs the same functions.
 */

/**
 * `plain`: the role is enough. `step-up`: a second factor within five minutes. `four-eyes`: another
 * person approves.
 */
type Risk = 'plain' | 'step-up' | 'four-eyes';

/**
 * `read` changes nothing. `change` runs in one transaction, together with its Idempotency-Key and its
 * entry in the audit. `outside` calls something beside the database, and manages its own transactions.
 */
type Effect = 'read' | 'change' | 'outside';

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/**
 * Who asked for an operation, with which service: what the core takes as an operator, and the principal
 * behind it.
 */
export type Caller = Operator & {
  readonly principal: Principal;
  /**
   * The user that approved what the principal proposed, and is answered; null for the machine; undefined
   * where nobody did.
   */
  readonly checkerId?: number | null;
};

export type Operation<Input extends TObject = TObject, Output extends TSchema = TSchema> = {
  /** Such as `merchant.suspend`: a noun and a verb. */
  readonly name: string;
  /** One line. */
  readonly summary: string;
  readonly description?: string;
  /** Below /operator/v1 or /portal/v1. A parameter, `:id`, is a field of the input. */
  readonly method: Method;
  readonly path: string;
  /** The words of the command that performs it, or why there is none. */
  readonly command: string | { readonly none: string };
  readonly input: Input;
  /** A property with the option `secret: true` is answered once, and never stored. */
  readonly output: Output;
  readonly roles: readonly (Role | PortalRole)[];
  readonly risk: Risk;
  /** The risk where it depends on the input, such as an amount above a limit. Never below `risk`. */
  readonly riskOf?: (caller: Caller, input: Static<Input>) => Promise<Risk>;
  /** The action in the audit; null where nothing changes. */
  readonly audit: string | null;
  readonly effect: Effect;
  /** 200 unless set. */
  readonly status?: 200 | 201 | 202;
  /** The media types of the file that it answers with, in place of JSON. */
  readonly files?: readonly string[];
  /** Whether it reads so much that one at a time is performed, apart from quick reads. */
  readonly isHeavy?: boolean;
  /** The largest body that it takes, where that is more than others take. */
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

/** An operation of a table, whose types are known to itself only: its input is checked before it runs. */
export type AnyOperation = Operation;

/** A table loses which input is whose. */
export function tableOf(...operations: readonly { readonly name: string }[]): readonly AnyOperation[] {
  return operations as unknown as readonly AnyOperation[];
}
