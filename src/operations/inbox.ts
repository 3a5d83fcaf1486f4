import Type, { type Static } from 'typebox';
import { FORECAST } from '../books/floats.ts';
import { listingAll } from '../listing.ts';
import { type AnyOperation, type Caller, type Fields, NO_COMMAND, tableOf } from '../operation.ts';
import { PORTAL_ROLES, ROLES } from '../principal.ts';
import {
  Count,
  KeyOf,
  Major,
  Nullable,
  NullableText,
  NullableTime,
  Opening,
  Text,
  Titled,
} from '../schema.ts';
import { DAY_MS, isoDay } from '../time.ts';

/**
 * What waits for a person, in one answer: matters that lists of the API have, each with the rights of its
 * list. The page of each matter is the one where it is resolved.
 */

const About = Type.Object({
  name: Text,
  daysLeft: Nullable(Opening(FORECAST, Type.Integer()), { description: 'How long a float lasts.' }),
  paid: Nullable(Major(), { description: 'What was paid within a limited network.' }),
  amount: Nullable(Major(), { description: 'The amount at which it must be notified.' }),
  percent: Nullable(Type.Integer()),
  currency: NullableText,
});
type About = Static<typeof About>;

type Matter = {
  readonly label: string;
  /** The list that has it, and its filters. */
  readonly list: string;
  readonly input?: Fields | ((caller: Caller) => Fields);
  /** Which of the items wait; left out: all. */
  readonly waits?: (item: Fields, caller: Caller) => boolean;
  /** The operation that resolves it; null: it resolves itself; left out: it is news for the caller. */
  readonly act?: string | null;
  /** When it came up, if it is news that one reads once. */
  readonly at?: string;
  /** The page of one item, and of several. */
  readonly page: (item: Fields) => string;
  readonly pages?: string;
  readonly about?: (item: Fields) => Partial<About> & { readonly name: string };
};

/** How long something is news. */
const NEWS_MS = 3 * DAY_MS;
const isNews = (at: unknown, { service }: Caller) =>
  at !== null && at !== undefined && service.clock().getTime() - new Date(at as string).getTime() < NEWS_MS;

const OPEN_DAYS = 14;
const lately = ({ service }: Caller) => ({
  from: isoDay(service.clock().getTime() - OPEN_DAYS * DAY_MS),
});
const ended = ({ state, endsAt }: Fields, { service }: Caller) =>
  state === 'closing' && service.clock().getTime() - new Date(endsAt as string).getTime() > DAY_MS;

const network = (state: string, label: string): Matter => ({
  label,
  list: 'settings.network',
  waits: (item) => item['state'] === state,
  act: 'settings.network-amount',
  page: () => '/settings',
  about: ({ paid, amount, percent, currency }) => ({
    ...{ name: String(currency), paid: Number(paid), amount: Number(amount) },
    ...{ percent: Number(percent), currency: String(currency) },
  }),
});

/** In the order in which a page shows them. */
const MATTERS = {
  'approval-waiting': {
    label: 'Waiting for your approval',
    list: 'approval.list',
    input: { forMe: true },
    act: 'approval.approve',
    page: ({ id }) => `/approvals/${id}`,
    pages: '/approvals',
  },
  'dispute-open': {
    label: 'Disputes without an answer',
    list: 'settlement.disputes',
    input: { open: true },
    act: 'settlement.answer',
    page: ({ settlementId }) => `/settlements/${settlementId}`,
    pages: '/settlements',
  },
  'settlement-due': {
    label: 'Settlements due',
    list: 'settlement.list',
    input: { state: 'APPROVED', limit: 200 },
    waits: ({ dueOn }, { service }) => String(dueOn) <= isoDay(service.clock().getTime()),
    act: 'settlement.pay',
    page: ({ id }) => `/settlements/${id}`,
    pages: '/settlements?state=APPROVED',
    about: ({ merchant }) => ({ name: String(merchant) }),
  },
  'entry-open': {
    label: 'Bank entries without a match',
    list: 'bank.entries',
    input: { open: true },
    act: 'bank.match',
    page: () => '/bank?open=true',
  },
  'day-late': {
    label: 'Days not closed',
    list: 'books.days',
    input: lately,
    waits: ended,
    act: 'books.close',
    page: () => '/books',
  },
  'float-low': {
    label: 'Low floats',
    list: 'float.low',
    act: 'float.top-up',
    page: ({ merchantId }) => `/merchants/${merchantId}`,
    pages: '/merchants',
    about: ({ merchant, daysLeft }) => ({ name: String(merchant), daysLeft: daysLeft as number | null }),
  },
  'limit-reached': {
    label: 'Daily limits reached',
    list: 'daily-limit.list',
    input: { reached: true },
    act: 'daily-limit.set',
    page: ({ merchantId }) => `/merchants/${merchantId}?tab=limits`,
  },
  'product-full': {
    label: 'Products with too much outstanding',
    list: 'product.list',
    input: { reached: true },
    act: 'product.set',
    page: ({ code }) => `/products/${code}`,
    pages: '/products',
    about: ({ name }) => ({ name: String(name) }),
  },
  'network-near': network('near', 'Limited network: near the amount to notify'),
  'network-passed': network('passed', 'Limited network: notify the authority'),
  'webhook-failing': {
    label: 'Failing webhooks',
    list: 'webhook.list',
    input: { limit: 200 },
    waits: ({ failingSince, enabled }) => failingSince !== null || enabled === false,
    act: 'webhook.enable',
    page: ({ id }) => `/webhooks/${id}`,
    pages: '/webhooks',
  },
  'batch-running': {
    label: 'Batches in production',
    list: 'batch.list',
    input: { status: 'PROCESSING' },
    act: null,
    page: ({ transactionId }) => `/batches/${transactionId}`,
    pages: '/batches?status=PROCESSING',
  },
  'proposal-decided': {
    label: 'Your proposals that were decided',
    list: 'approval.list',
    input: { mine: true },
    waits: ({ decidedAt, checker }, caller) => checker !== caller.principal.name && isNews(decidedAt, caller),
    at: 'decidedAt',
    page: ({ id }) => `/approvals/${id}`,
    pages: '/approvals?tab=mine',
  },
  'dispute-answered': {
    label: 'Answers to your disputes',
    list: 'settlement.disputes',
    waits: ({ answeredAt }, caller) => caller.principal.merchantId !== null && isNews(answeredAt, caller),
    at: 'answeredAt',
    page: ({ settlementId }) => `/settlements/${settlementId}`,
    pages: '/settlements',
  },
  'job-ended': {
    label: 'Your jobs that have ended',
    list: 'job.list',
    waits: ({ endedAt, createdBy }, caller) => createdBy === caller.principal.name && isNews(endedAt, caller),
    at: 'endedAt',
    page: ({ id }) => `/jobs/${id}`,
    pages: '/system',
  },
} as const satisfies Readonly<Record<string, Matter>>;

const ABOUT_MAX = 3;

const ItemSchema = Type.Object({
  matter: KeyOf(MATTERS),
  count: { ...Count, description: 'How many, as far as they were counted.' },
  isMore: Type.Boolean({ description: 'There are more than were counted.' }),
  isYours: Titled(
    'For you',
    Type.Boolean({ description: 'Whether your roles permit to resolve it, or it is news for you.' }),
  ),
  at: { ...NullableTime, description: 'When the newest came up, if it is news.' },
  link: Type.String({ description: 'The page of the console or the portal where it is resolved.' }),
  about: Type.Array(About, { description: `What the first of them are about: at most ${ABOUT_MAX}.` }),
});
type Item = Static<typeof ItemSchema>;

/** Returns the first of what differs: several settlements may be of one merchant. */
function firstOf(all: readonly About[]): About[] {
  const differing = new Map(all.map((each) => [JSON.stringify(each), each]));
  return [...differing.values()].slice(0, ABOUT_MAX);
}

type Listed = { readonly items: readonly Fields[]; readonly nextCursor?: string | null };

/** Reads one matter. @returns undefined if nothing waits, or the caller may not see the list */
async function read(
  caller: Caller,
  table: readonly AnyOperation[],
  [matter, { list, input = {}, waits, act, at, page, pages, about }]: [keyof typeof MATTERS, Matter],
): Promise<Item | undefined> {
  const { roles } = caller.principal;
  const permits = (name: string) =>
    table.find((each) => each.name === name)?.roles.some((role) => roles.includes(role)) ?? false;
  if (!permits(list)) return undefined;
  const given = typeof input === 'function' ? input(caller) : input;
  const operation = table.find((each) => each.name === list) as AnyOperation;
  const { items, nextCursor = null } = (await operation.run(caller, given as never)) as Listed;
  const found = waits ? items.filter((item) => waits(item, caller)) : items;
  const [first] = found;
  if (first === undefined) return undefined;
  const none = { daysLeft: null, paid: null, amount: null, percent: null, currency: null };
  return {
    matter,
    count: found.length,
    // What a filter of this function counts is not a whole list.
    isMore: nextCursor !== null && waits === undefined,
    isYours: act === undefined || (act !== null && permits(act)),
    at: at === undefined ? null : (first[at] as Date),
    link: pages === undefined || found.length === 1 ? page(first) : pages,
    about: about ? firstOf(found.map((item) => ({ ...none, ...about(item) }))) : [],
  };
}

const inboxWith = (table: () => readonly AnyOperation[]) =>
  listingAll({
    name: 'inbox.list',
    summary: 'List what waits for you, and what is new for you',
    description:
      'Each matter comes from a list that the caller may read, and is left out while nothing in it waits.',
    path: '/inbox',
    item: ItemSchema,
    columns: ['matter', 'count', 'isYours', 'link'],
    roles: ROLES,
    async rows(caller) {
      const found: Item[] = [];
      // One after the other: it is asked for by every open page, and must not take many connections at once.
      for (const each of Object.entries(MATTERS) as [keyof typeof MATTERS, Matter][]) {
        const item = await read(caller, table(), each);
        if (item) found.push(item);
      }
      return found;
    },
  });

export const inboxOf = (table: () => readonly AnyOperation[]) => tableOf(inboxWith(table));

/** The same for the people of a merchant. */
export const ownInboxOf = (table: () => readonly AnyOperation[]) => {
  const own = { ...inboxWith(table), command: NO_COMMAND, roles: PORTAL_ROLES };
  return tableOf(own);
};
