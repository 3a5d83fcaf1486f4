import { type Actor, createService, type Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { within } from '../db/within.ts';
import { findEntry } from '../ledger/journal.ts';
import { toNumber } from '../money.ts';
import type { AnyOperation, Caller } from '../operation.ts';
import { findUser } from '../people/users.ts';
import type { Principal, Role } from '../principal.ts';
import { Problem } from '../problem.ts';
import { findBySerials } from '../vouchers/find.ts';
import { showVoucher } from '../vouchers/operate.ts';
import { countPeople, listOwnEntries } from './queries.ts';
import { readSettings, type Settings } from './settings.ts';

/**
 * The complete list of operations that one person proposes and another one approves (docs/how-to/people.md,
 * "Four eyes").
 */

type Input = Readonly<Record<string, unknown>>;

type Rule = {
  /** Returns whether an input needs approval. Without this function, every input does. */
  readonly applies?: (input: Input, settings: Settings, service: Service) => boolean | Promise<boolean>;
  /** Roles that may propose the operation, besides those that may perform it. */
  readonly proposers?: readonly Role[];
};

const isLarge: Rule['applies'] = ({ amount }, { approvalAmount }) =>
  Math.abs(Number(amount)) > approvalAmount;

/** Without an amount, the whole balance of the voucher is paid out. */
const isLargeCashOut: Rule['applies'] = async ({ amount, serialNumber }, { approvalAmount }, service) => {
  if (amount !== undefined) return Number(amount) > approvalAmount;
  const { balance } = await showVoucher(service, BigInt(String(serialNumber)));
  return toNumber(balance) > approvalAmount;
};

/** The relevant amount is the difference between the old and the new redemption. */
const isLargeCorrection: Rule['applies'] = async ({ amount, transactionId }, { approvalAmount }, service) => {
  const entry = await findEntry(service, String(transactionId));
  return entry !== undefined && Math.abs(toNumber(entry.amount) - Number(amount)) > approvalAmount;
};

/** A new merchant may receive money on its float. */
const isLargeFloat: Rule['applies'] = ({ float = 0 }, { approvalAmount }) => Number(float) > approvalAmount;

const isBulk: Rule['applies'] = ({ serialNumbers }, { approvalVouchers }) =>
  !Array.isArray(serialNumbers) || serialNumbers.length > approvalVouchers;

/** A bulk change needs approval if the change of one of its vouchers would. */
const isLargeCancel: Rule['applies'] = async (input, settings, service) => {
  const { serialNumbers } = input;
  if (!Array.isArray(serialNumbers) || (await isBulk(input, settings, service))) return true;
  const found = await findBySerials(service, serialNumbers.map(BigInt));
  return found.some(({ balance }) => toNumber(balance) > settings.approvalAmount);
};

/** Users with one of these roles can approve movements of money. */
const POWERFUL = ['owner', 'finance'];
const grantsPower = ({ roles }: Input) => [roles].flat().some((role) => POWERFUL.includes(String(role)));

const CARERS: readonly Role[] = ['support'];

const RULES: Readonly<Record<string, Rule>> = {
  'merchant.create': { applies: isLargeFloat },
  'float.top-up': { applies: isLarge },
  'float.refund': {},
  'float.correct': {},
  'voucher.bulk': { applies: isBulk },
  'voucher.bulk-cancel': { applies: isLargeCancel },
  'voucher.cancel': { applies: isLargeCashOut },
  'voucher.adjust': { applies: isLarge, proposers: CARERS },
  'voucher.cash-out': { applies: isLargeCashOut, proposers: CARERS },
  'redemption.correct': { applies: isLargeCorrection, proposers: CARERS },
  'voucher.escheat': {},
  'books.transfer': {},
  'books.escheat': {},
  'settlement.approve': {},
  'settlement.pay': {},
  'settlement.terms': {},
  'batch.export': {},
  'sheets.order': {},
  'sheets.order-card': { proposers: CARERS },
  'voucher.export': {},
  'keyring.drop': { proposers: ['operations'] },
  'user.invite': { applies: (input) => (input['merchantId'] ?? null) === null && grantsPower(input) },
  'user.set-roles': {
    async applies(input, _settings, { db }) {
      const user = grantsPower(input) ? await findUser(db, Number(input['id'])) : undefined;
      return user !== undefined && user.merchantId === null;
    },
  },
  'user.reset-2fa': {},
  'settings.set': {},
};

/**
 * Operations that the command line performs alone only by breaking the glass: they decide who counts as
 * another person.
 */
const GLASS_ONLY: readonly string[] = ['user.confirm'];

type Named = Pick<AnyOperation, 'name'>;

const ruleOf = ({ name }: Named): Rule | undefined => RULES[name];

/** The operations that need approval whatever the input: those of the risk `four-eyes`. */
export const ALWAYS_APPROVED: readonly string[] = Object.keys(RULES).filter((name) => !RULES[name]?.applies);

/** Returns the roles that may propose an operation, besides those that may perform it. */
export const proposersOf = (operation: Named): readonly Role[] => ruleOf(operation)?.proposers ?? [];

/**
 * Returns whether somebody may propose an operation that their roles do not permit. Users of a merchant may
 * not.
 */
export function mayPropose(
  operation: Named,
  { roles, merchantId }: Pick<Principal, 'roles' | 'merchantId'>,
): boolean {
  return merchantId === null && proposersOf(operation).some((role) => roles.includes(role));
}

/**
 * Returns whether an operation with this input needs approval. Operations of a merchant's users concern only
 * that merchant, and need none.
 */
export async function needsApproval(
  operation: Named,
  { service, principal }: Pick<Caller, 'service' | 'principal'>,
  input: Input,
): Promise<boolean> {
  const rule = ruleOf(operation);
  if (!rule || principal.merchantId !== null) return false;
  return rule.applies ? rule.applies(input, await readSettings(service.db), service) : true;
}

/**
 * Returns whether an account of the machine has to break the glass: once two people could approve, or once
 * the operator has chosen the delay. Until then, the operator sets the service up with the command line.
 */
async function isGlassClosed({ db }: Service): Promise<boolean> {
  const [row] = await db.query<{ people: number }>(countPeople());
  return Number(row?.people ?? 0) >= 2 || (await readSettings(db)).approvalMode === 'delay';
}

/**
 * Checks that the command line may perform an operation alone.
 * @throws Problem `approval-required` if another person has to approve it
 */
export async function requireGlass(
  operation: Named,
  service: Service,
  actor: Actor,
  input: Input,
): Promise<void> {
  if (actor.kind === 'break-glass') {
    if (actor.reason === null) throw new Problem('invalid', '--break-glass needs --reason');
    return;
  }
  const principal = { merchantId: null } as Principal;
  const isGuarded =
    GLASS_ONLY.includes(operation.name) || (await needsApproval(operation, { service, principal }, input));
  if (!isGuarded || !(await isGlassClosed(service))) return;
  throw new Problem(
    'approval-required',
    `${operation.name} is approved by another person: propose it in the console, or do it alone with ` +
      '--break-glass and --reason',
  );
}

/** The effect of an operation: its changes, as the audit shows them. */

/** A change that an operation would make, as the audit would show it. */
export type Effect = {
  readonly action: string;
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
};

export type Fields = Record<string, unknown>;
type EntryRow = { action: string; subject: string; before: string | null; after: string | null };

/** Parses stored JSON, or returns null. */
export const parsed = (text: string | null): unknown => (text === null ? null : JSON.parse(text));

/** Returns JSON in canonical form, with names in order. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each) && !(each instanceof Date)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  );
}

/** Returns a service that works in a transaction. */
export function inside(service: Service, tx: Parameters<typeof within>[1]): Service {
  const db = within(service.db, tx);
  return createService({ ...service, db, readDb: db });
}

/** Returns the changes that a transaction has made so far. */
export async function readEffect(tx: Queries): Promise<Effect[]> {
  const rows = await tx.query<EntryRow>(listOwnEntries());
  return rows.map(({ action, subject, before, after }) => ({
    action,
    subject,
    before: parsed(before),
    after: parsed(after),
  }));
}

/** The changes that an operation would make, and its answer. */
type Preview = { readonly effect: Effect[] | null; readonly output: unknown };

/**
 * Returns the changes that an operation would make. It is performed in a transaction that is rolled back.
 * @returns no effect for an operation that calls something outside the database; an empty one for a
 *   repetition, such as the same refund under the same reference
 * @throws Problem or Refusal if it could not be performed now
 */
export async function previewEffect(
  operation: AnyOperation,
  caller: Caller,
  input: Fields,
): Promise<Preview> {
  if (operation.effect !== 'change') return { effect: null, output: null };
  const previewed = Symbol('rolled back');
  let preview: Preview = { effect: [], output: null };
  const run = () =>
    caller.service.db.transaction(async (tx) => {
      const output = await operation.run({ ...caller, service: inside(caller.service, tx) }, input);
      preview = { effect: await readEffect(tx), output };
      throw previewed;
    });
  await retrying(run).catch((thrown: unknown) => {
    if (thrown !== previewed) throw thrown;
  });
  return preview;
}

/**
 * Changes whose value before them does not matter to an approver. A float in use changes all the time, and a
 * top-up adds the same to any balance.
 */
const INDEPENDENT = ['float.top-up'];

/**
 * Returns the part of an effect that must not differ from the one the maker saw: the values before the
 * changes. New rows get other numbers each time.
 */
function foundIn(effect: readonly Effect[] | null): string {
  return canonical(
    (effect ?? [])
      .filter(({ action, before }) => before !== null && !INDEPENDENT.includes(action))
      .map(({ action, subject, before }) => [action, subject, before]),
  );
}

/**
 * Checks that an effect is the confirmed one.
 * @throws Problem `effect-changed` with the new effect if it is not
 */
export function requireSameEffect(confirmed: readonly Effect[] | null, effect: readonly Effect[]): void {
  if (foundIn(confirmed) === foundIn(effect)) return;
  const message = 'the effect is not what was proposed: look at the new one, and confirm it';
  throw new Problem('effect-changed', message, undefined, { effect });
}
