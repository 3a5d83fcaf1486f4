import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox';
import type { Operator } from './context.ts';
import { decimalsOf, toNumber } from './money.ts';
import type { PortalRole, Principal, Role } from './principal.ts';
import { Input, Reason } from './schema.ts';

/**
 * The declaration of operations (docs/reference/operator-api.md). Each operation is declared once. The routes
 * of /operator/v1 and /portal/v1 and their OpenAPI documents are made from these declarations. The command
 * line performs the same functions.
 */

/** The reason why an operation of the portal alone has no command. */
export const NO_COMMAND = { none: 'the portal belongs to merchants, and the command line to the operator' };

/**
 * `plain`: the role is sufficient. `step-up`: a second factor within five minutes. `four-eyes`: another
 * person approves.
 */
type Risk = 'plain' | 'step-up' | 'four-eyes';

/**
 * `read` changes nothing. `change` runs in one transaction, together with its Idempotency-Key and its entry
 * in the audit. `outside` calls something outside the database, or manages its own transactions: it can be
 * repeated, even while it is performed.
 */
type Effect = 'read' | 'change' | 'outside';

/** The input of an operation whose types are not known. */
export type Fields = Readonly<Record<string, unknown>>;

/** A condition under which an operation needs two people. */
export type Condition = {
  /** Completes the sentence "Another person approves it if …". */
  readonly text: string;
  applies(caller: Pick<Caller, 'service' | 'principal'>, input: Fields): boolean | Promise<boolean>;
  /** Instead of the input, what the operation moves by hand decides: any money, or more than the limit. */
  readonly moved?: 'any' | 'above-limit';
};

const byInput = { applies: () => false };

/** The sum of what one person has moved by hand, or of what was moved of one subject, is above the limit. */
export const ABOVE_LIMIT: Condition = {
  text:
    'the person, or everybody together with the same float, voucher or merchant, has moved more than the limit ' +
    'of the currency in 24 hours',
  ...byInput,
  moved: 'above-limit',
};

/** The operation moves money that is booked elsewhere. */
export const MOVES_MONEY: Condition = {
  text: 'money that was booked elsewhere goes back to a voucher',
  ...byInput,
  moved: 'any',
};

/**
 * How many people have to agree to a change of the operator (docs/reference/operator-api.md). The people and
 * tokens of a merchant decide without the operator.
 */
export type Approval =
  | {
      readonly people: 1;
      /** Why one person is enough: a sentence. */
      readonly why: string;
    }
  | {
      readonly people: 2;
      /** Why two are needed: a sentence. */
      readonly why: string;
      /** The conditions: one that applies is enough; null: for every input. */
      readonly when: readonly Condition[] | null;
      /** Roles that may propose the operation, besides those that may perform it. */
      readonly proposers: readonly Role[];
      /** Whether a merchant's own people agree on it, without the operator. */
      readonly isOfMerchant: boolean;
      /** The roles that may approve the operation; null: those that may perform it. */
      readonly approvers: readonly Role[] | null;
      /** An operation on the same subject: the person who approved it does not approve this one. */
      readonly after: string | null;
    };

/** A change that an operation has made, as the audit has it. */
export type Made = {
  readonly action: string;
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
};

/** A value of a sentence: a text, an amount such as `EUR 12.50`, a number or a list; null: the operator. */
export type Value = string | number | readonly string[] | null;

/** What two people agree on, in words: whom it concerns, how much, and what changes into what. */
type Agreement<Input = Fields> = {
  /** The sentence, with the names of values in braces. The console has it in other languages. */
  readonly sentence: string;
  /**
   * Returns the values of the sentence and others, and a page of the console about what it concerns. It runs
   * in a rehearsal, after the operation.
   */
  of(asked: Asked<Input>): Agreed | Promise<Agreed>;
};

export type Asked<Input = Fields> = {
  readonly caller: Caller;
  readonly input: Input;
  readonly made: readonly Made[];
};

export type Agreed = { readonly link: string; readonly [name: string]: Value | undefined };

/** One person is enough. */
export function alone(why: string): OnePerson {
  return { people: 1, why };
}

type OnePerson = Extract<Approval, { people: 1 }>;
type TwoPeople = Extract<Approval, { people: 2 }>;

/** One person proposes it, and another one approves it. */
export function twoPeople({
  why,
  when = null,
  proposers = [],
  approvers = null,
  after = null,
  isOfMerchant = false,
}: Pick<TwoPeople, 'why'> & Partial<TwoPeople>): TwoPeople {
  return { people: 2, why, when, proposers, approvers, after, isOfMerchant };
}

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** The caller of an operation: an operator, as the core needs it, and the principal behind it. */
export type Caller = Operator & {
  readonly principal: Principal;
  /**
   * The user who approved the proposal and receives the answer. Null for the machine; undefined without an
   * approval.
   */
  readonly checkerId?: number | null;
  /**
   * Whether two people have agreed, or the caller decides alone: a merchant about itself, or the operator as
   * long as one person is everybody. Left out: not.
   */
  readonly isAgreed?: boolean;
};

export type Operation<Input extends TObject = TObject, Output extends TSchema = TSchema> = {
  /** A noun and a verb, such as `merchant.suspend`. */
  readonly name: string;
  /** One line. */
  readonly summary: string;
  /** The text of its button, if the name does not say it. */
  readonly title?: string;
  readonly description?: string;
  /** A path below /operator/v1 or /portal/v1. A parameter such as `:id` is a field of the input. */
  readonly method: Method;
  readonly path: string;
  /** The words of the command that performs the operation, or the reason why there is none. */
  readonly command: string | { readonly none: string };
  readonly input: Input;
  /** A property with the option `secret: true` is returned once, and never stored. */
  readonly output: Output;
  /** The fields of an item that a table for people shows, in their order; all of them by default. */
  readonly columns?: readonly string[];
  readonly roles: readonly (Role | PortalRole)[];
  /**
   * Whether no token may call it: it decides who is a person, or what a person or a token may do.
   */
  readonly isForPeople?: boolean;
  /** Null for an operation that changes nothing. */
  readonly approval: Approval | null;
  /** What two people agree on; undefined if one is enough for every input. */
  readonly agreement?: Agreement<Static<Input>> | undefined;
  /** The lowest risk that any input has. It follows from `approval` where two people are needed. */
  readonly risk: Risk;
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
  /** The field of the answer that says whether it went well. If not, the command ends with exit status 1. */
  readonly outcome?: string;
  /** The largest body that the operation takes, if it is above the usual limit. */
  readonly bodyMaxBytes?: number;
  /** Checks, before the transaction of a change, what needs a network call. It changes nothing. */
  prepare?(caller: Caller, input: Static<Input>): Promise<void>;
  run(caller: Caller, input: Static<Input>): Promise<Static<Output>>;
};

type Defaults = 'risk' | 'audit' | 'effect' | 'approval' | 'agreement' | 'method' | 'command' | 'input';

/** An operation as it is written: the rest follows. */
type Definition<Properties extends TProperties, Output extends TSchema> = Omit<
  Operation<TObject<Properties>, Output>,
  Defaults
> & {
  /** By default `GET` for what changes nothing, and `POST` for the rest. */
  readonly method?: Method;
  /** By default the words of the name. */
  readonly command?: Operation['command'];
  /** The fields of the input, besides the reason of a change. */
  readonly input: Properties;
};

/** Defines an operation that changes nothing. */
export function reading<Properties extends TProperties, Output extends TSchema>(
  definition: Definition<Properties, Output>,
): Operation<TObject<Properties>, Output> {
  const input = Input(definition.input);
  return rendering({
    method: 'GET',
    risk: 'plain',
    approval: null,
    audit: null,
    effect: 'read',
    ...definition,
    input,
  });
}

type Change<Properties extends TProperties, Output extends TSchema> = Definition<Properties, Output> &
  Partial<Pick<Operation, 'audit' | 'effect'>> & {
    readonly risk?: Exclude<Risk, 'four-eyes'>;
    /** Whether a reason is added to the input: by default, if the audit has the change. */
    readonly takesReason?: boolean;
    /** Whether a form asks for it: by default; not where a comment says why, or where nobody reads it. */
    readonly asksReason?: boolean;
  } & (
    | { readonly approval: OnePerson; readonly agreement?: undefined }
    // What two people approve is performed in the transaction of the approval.
    | {
        readonly approval: TwoPeople;
        readonly effect?: 'change';
        readonly agreement: Agreement<Static<TObject<Properties>>>;
      }
  );

type Changing<Properties extends TProperties> = TObject<Properties & { readonly reason: typeof Reason }>;

/**
 * Defines an operation that changes something, under its own name in the audit. The reason that
 * is added to its input is the caller's: the operation itself does not get it.
 */
export function changing<Properties extends TProperties, Output extends TSchema>({
  risk,
  takesReason,
  asksReason = true,
  prepare,
  run,
  agreement,
  ...definition
}: Change<Properties, Output>): Operation<Changing<Properties>, Output> {
  const { name, approval, audit } = definition;
  const isReasoned = takesReason ?? (audit !== null && !('reason' in definition.input));
  const reason = asksReason ? Reason : Type.Optional(Type.Unsafe({ ...Reason, 'x-asked': false }));
  const own = (given: unknown) => {
    const { reason: _reason, ...input } = given as Fields;
    return (isReasoned ? input : given) as Static<TObject<Properties>>;
  };
  return rendering<Changing<Properties>, Output>({
    method: 'POST',
    audit: name,
    effect: 'change',
    ...definition,
    input: Input({ ...definition.input, ...(isReasoned && { reason }) }) as Changing<Properties>,
    agreement: agreement && {
      ...agreement,
      of: (asked) => agreement.of({ ...asked, input: own(asked.input) }),
    },
    risk: riskOf(approval) ?? risk ?? 'plain',
    ...(prepare && { prepare: (caller: Caller, input: unknown) => prepare(caller, own(input)) }),
    run: (caller, input) => run(caller, own(input)),
  });
}

type Written<Input extends TObject, Output extends TSchema> = Omit<Operation<Input, Output>, 'command'> &
  Pick<Definition<TProperties, Output>, 'command'>;

/**
 * Completes an operation, and lets it return rows as the database has them: amounts and ids are rendered by
 * its schema.
 */
function rendering<Input extends TObject, Output extends TSchema>(
  written: Written<Input, Output>,
): Operation<Input, Output> {
  const { name, output, run, command = name.replace('.', ' ') } = written;
  return { ...written, command, run: async (caller, input) => rendered(output, await run(caller, input)) };
}

type Shape = {
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
};

/**
 * Renders what an operation returns by its schema, without fields that the schema does not have. Amounts are
 * minor units inside, as the database has them. A field of the format `money` becomes a number in major
 * units, by the currency of its object, or of the nearest object around it. An id becomes a text.
 */
export function rendered<Value>(schema: TSchema, value: Value): Value {
  return render(schema as Shape, value, undefined) as Value;
}

function render(shape: Shape | undefined, value: unknown, currency: string | undefined): unknown {
  if (typeof value === 'bigint' && shape?.format === 'money') return toMajor(value, currency);
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  if (isNumber && [shape?.type].flat().includes('string')) return String(value);
  if (Array.isArray(value))
    return shape?.items ? value.map((each) => render(shape.items, each, currency)) : value;
  const { properties } = shape ?? {};
  if (value === null || typeof value !== 'object' || !properties) return value;
  const { currency: own = currency } = value as { currency?: string };
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name in properties)
      .map(([name, each]) => [name, render(properties[name], each, own)]),
  );
}

function toMajor(minor: bigint, currency: string | undefined): number {
  const decimals = currency === undefined ? undefined : decimalsOf(currency);
  if (decimals === undefined) throw new Error('an amount has no currency beside it');
  return toNumber({ minor, decimals });
}

/** Returns the lowest risk of an operation that two people may have to agree on. */
function riskOf(approval: Approval): Risk | undefined {
  if (approval.people === 1) return undefined;
  return approval.when === null ? 'four-eyes' : 'step-up';
}

/**
 * An operation of a table. Only the operation itself knows its types, so its input is checked before it runs.
 */
export type AnyOperation = Operation;

/**
 * Whether a request may have an Idempotency-Key. A request with a PIN has none: the first answer would show
 * whether a PIN is right, without a count of wrong ones. It is repeated under its reference.
 */
export const takesKey = ({ effect, files, input }: Pick<AnyOperation, 'effect' | 'files' | 'input'>) =>
  effect !== 'read' && files === undefined && !('pin' in input.properties);

/** Makes a table of operations. The table does not keep their types. */
export function tableOf(...operations: readonly { readonly name: string }[]): readonly AnyOperation[] {
  return operations as unknown as readonly AnyOperation[];
}

/** Returns an output as it is stored, without secrets. A secret is shown once, to the person who approves. */
export function withoutSecrets({ output: schema }: AnyOperation, output: unknown): string {
  const { properties = {} } = schema as { properties?: Record<string, { secret?: boolean }> };
  return JSON.stringify(output, (name, value) => (properties[name]?.secret ? null : value));
}
