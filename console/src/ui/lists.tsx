import type { ReactNode } from 'react';
import { useTexts } from '../i18n/index.tsx';
import type { Filters } from './address.ts';
import type { Item } from './item.ts';
import type { Choices } from './names.ts';
import { State, Value } from './value.tsx';

export type ListProps = {
  /** The operation that lists, such as `voucher.list`. */
  readonly of: string;
  /** The parts of its path, and filters that the page sets. */
  readonly fixed?: Filters;
  /** The columns, if they are not those of the operation. */
  readonly columns?: readonly string[];
  /** The columns that a narrow screen keeps: the first three by default. */
  readonly narrow?: readonly string[];
  /** The filters are in the address of the page: all fields of the operation, unless the page names them. */
  readonly search?: Filters;
  readonly filters?: readonly string[];
  /** What a filter offers to choose from, if its schema does not say it. */
  readonly choices?: Choices;
  readonly limit?: number;
  /** Whether work goes on that adds rows, if the rows do not say it. */
  readonly runs?: boolean;
  readonly cell?: (name: string, item: Item) => ReactNode | undefined;
  /** The actions at the end of a row. */
  readonly actions?: (item: Item) => ReactNode;
  /** The actions on the rows that are selected. Without it, none can be. */
  readonly bulk?: ((items: readonly Item[]) => ReactNode) | undefined;
  readonly empty?: ReactNode;
  readonly title?: string;
  /** The actions of the list, in its head. */
  readonly aside?: ReactNode;
  /** Only the first rows, without a button for more or an export. */
  readonly brief?: boolean;
};

type Shown = Pick<ListProps, 'narrow' | 'cell'> & { readonly columns: readonly string[] };

/** How the lists are shown that several pages have, where it is not as their operations say. */
const LISTS = {
  'api-key.list': {
    columns: ['name', 'keyId', 'madeBy', 'scopes', 'createdAt', 'lastUsedAt', 'expiresAt', 'revokedAt'],
    narrow: ['name', 'keyId', 'lastUsedAt'],
    cell: (name: string, { madeBy }: Item) =>
      name === 'madeBy' ? <MadeBy isOperator={madeBy === 'operator'} /> : undefined,
  },
  'batch.list': {
    columns: ['acceptedAt', 'reference', 'merchantId', 'status', 'value', 'quantity', 'produced'],
    narrow: ['reference', 'status', 'quantity'],
  },
  'settlement.list': {
    columns: ['number', 'merchantId', 'state', 'firstDay', 'lastDay', 'dueOn', 'openDisputes', 'payable'],
    narrow: ['number', 'state', 'payable'],
    cell: (name: string, item: Item) => (name === 'dueOn' ? <Due of={item} /> : undefined),
  },
  'transaction.list': {
    columns: ['timestamp', 'kind', 'merchantId', 'serialNumber', 'voucherCode', 'reference', 'amount'],
    narrow: ['timestamp', 'kind', 'amount'],
  },
  'user.list': {
    columns: ['email', 'name', 'roles', 'merchantId', 'state', 'factors', 'signedInAt'],
    narrow: ['email', 'roles', 'state'],
  },
  'voucher.list': {
    columns: ['serialNumber', 'voucherCode', 'state', 'product', 'merchantId', 'expiresAt', 'balance'],
    narrow: ['voucherCode', 'state', 'balance'],
  },
  'webhook.list': {
    columns: ['url', 'merchantId', 'state', 'events', 'pending', 'failed'],
    narrow: ['url', 'state', 'failed'],
    cell(name: string, item: Item) {
      if (name === 'url' && item['url'] === null) return <Pull />;
      return name === 'state' ? <State name={stateOfWebhook(item)} /> : undefined;
    },
  },
} as const satisfies Record<string, Shown>;

export function shownAs(list: keyof typeof LISTS): Shown;
export function shownAs(list: string): Shown | undefined;
/** How a list of an operation is shown, unless the page says it. */
export function shownAs(list: string): Shown | undefined {
  return (LISTS as Readonly<Record<string, Shown>>)[list];
}

/** Whether an endpoint works. */
export function stateOfWebhook({ enabled, failingSince }: Item): string {
  if (!enabled) return 'disabled';
  return failingSince ? 'failing' : 'active';
}

/** The day by which a settlement is to be paid, and whether that is over. */
function Due({ of: { dueOn, state } }: { of: Item }) {
  const { overdue } = useTexts().settlement;
  const isPaid = state === 'PAID' || state === 'DRAFT' || dueOn === null;
  const isLate = !isPaid && String(dueOn) < new Date().toISOString().slice(0, 10);
  return (
    <span className={isLate ? 'bad' : undefined} title={isLate ? overdue : undefined}>
      <Value name="dueOn" value={dueOn} />
      {isLate && <span className="skip">{overdue}</span>}
    </span>
  );
}

/** An endpoint without a URL. */
function Pull() {
  return useTexts().webhook.pull;
}

/** A merchant should notice a key that it did not make. */
function MadeBy({ isOperator }: { isOperator: boolean }) {
  const texts = useTexts().keys;
  return isOperator ? <b>{texts.byOperator}</b> : texts.byMerchant;
}
