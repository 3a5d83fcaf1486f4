import { countPeople } from './approvals.queries.ts';
import type { AnyOperation, Caller } from './operations.ts';
import type { Role } from './principal.ts';
import { readSettings, type Settings } from './settings.ts';

/**
 * What one person proposes and another one approves (docs/people.md, "Four eyes"). The whole list stands
 * here.
 */

type Rule = {
  /** Whether this input needs it; left out: every input does. */
  readonly applies?: (
    input: Readonly<Record<string, unknown>>,
    settings: Settings,
    caller: Caller,
  ) => boolean;
  /** Roles that may propose it, beside those that may perform it. */
  readonly proposers?: readonly Role[];
};

const isLarge: Rule['applies'] = ({ amount, delta }, { approvalAmount }) =>
  Math.abs(Number(amount ?? delta ?? 0)) > approvalAmount;

const isBulk: Rule['applies'] = ({ serialNumbers }, { approvalVouchers }) =>
  !Array.isArray(serialNumbers) || serialNumbers.length > approvalVouchers;

/** Whoever has one of these roles can approve what moves money. */
const POWERFUL = ['owner', 'finance'];
const grantsPower: Rule['applies'] = ({ roles, merchantId }) =>
  (merchantId ?? null) === null && [roles].flat().some((role) => POWERFUL.includes(String(role)));

const CARERS: readonly Role[] = ['support'];

const RULES: Readonly<Record<string, Rule>> = {
  'float.top-up': { applies: isLarge },
  'float.refund': {},
  'float.correct': {},
  'voucher.bulk': { applies: isBulk },
  'voucher.adjust': { applies: isLarge, proposers: CARERS },
  'voucher.cash-out': { applies: isLarge, proposers: CARERS },
  'redemption.correct': { applies: isLarge, proposers: CARERS },
  'settlement.approve': {},
  'settlement.pay': {},
  'settlement.terms': {},
  'merchant.terms': {},
  'batch.export': {},
  'keyring.drop': { proposers: ['operations'] },
  'user.invite': { applies: grantsPower },
  'user.set-roles': { applies: grantsPower },
  'user.reset-2fa': {},
  'settings.set': {},
};

const ruleOf = ({ name, risk }: AnyOperation): Rule | undefined =>
  RULES[name] ?? (risk === 'four-eyes' ? {} : undefined);

/** Whether a role may propose an operation that it may not perform. */
export function mayPropose(operation: AnyOperation, roles: readonly string[]): boolean {
  return ruleOf(operation)?.proposers?.some((role) => roles.includes(role)) ?? false;
}

/** Whether an operation with this input has to be approved. */
export async function needsApproval(
  operation: AnyOperation,
  caller: Caller,
  input: Readonly<Record<string, unknown>>,
): Promise<boolean> {
  const rule = ruleOf(operation);
  if (!rule) return false;
  return rule.applies ? rule.applies(input, await readSettings(caller.service.db), caller) : true;
}

/**
 * Whether an account of the machine has to break the glass: once two people could approve, or one has
 * chosen to wait. Before that, the command line is how an operator begins.
 */
export async function isGlassClosed({ service }: Caller): Promise<boolean> {
  const [row] = await service.db.query<{ people: number }>(countPeople());
  return Number(row?.people ?? 0) >= 2 || (await readSettings(service.db)).approvalMode === 'delay';
}
