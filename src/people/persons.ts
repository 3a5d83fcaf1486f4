import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { type Condition, changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { Problem } from '../problem.ts';
import { toId } from '../schema.ts';
import { readSettings } from '../settings/settings.ts';
import { changeUser, findUser, NamedUser, ofUser, UserSchema, updateUser } from './users.ts';

/**
 * Who is a person (docs/how-to/people.md, "Who counts as a person"). Each caller leads to a person or to the
 * machine:
 *
 * - a session leads to its user. An account that somebody else made is a person once a third one has
 *   confirmed it. Until then it approves nothing, and what it proposes may belong to those who know its link.
 * - a token leads to its user, or to nobody. What it proposes may belong to all who know the token. What a
 *   token of nobody proposes needs two approvers.
 * - the command line is the machine. It proposes nothing.
 *
 * The database keeps these rules itself (sql/020-people.sql, sql/022-approvals.sql).
 */

type Makers = { readonly makers: number[] };

const known = (ids: readonly (number | null | undefined)[]) =>
  ids.filter((id): id is number => typeof id === 'number');

/** Finds which users are people of their own, at the operator or at a merchant. */
const findPersons = (ids: readonly number[], merchantId: number | null = null) =>
  sql`select u.id from unnest(${ids}::integer[]) u (id) where is_person(u.id, ${merchantId}::integer)`;

/** Why a user may not approve: the account is not a person, or may be the maker's. */
type Obstacle = 'not-confirmed' | 'own' | 'may-be-own';

/** What stands behind a proposal, seen by a user who wants to approve it. */
type Standing = {
  readonly obstacle: Obstacle | undefined;
  /** Whether the proposal is nobody's, so that two people have to approve it. */
  readonly isNobodys: boolean;
};

/** Returns how a user stands to a proposal. */
export async function standingTo(
  tx: Queries,
  {
    id,
    makerId,
    merchantId,
  }: { readonly id: string; readonly makerId: number | null; readonly merchantId: number | null },
  userId: number,
): Promise<Standing> {
  const [{ makers } = { makers: [] }] = await tx.query<Makers>(
    sql`select people_behind(makers) as makers from approvals where id = ${id}`,
  );
  const isNobodys = makers.length === 0;
  const isPerson = (await tx.query(findPersons([userId], merchantId))).length > 0;
  if (!isPerson) return { obstacle: 'not-confirmed', isNobodys };
  if (!makers.includes(userId)) return { obstacle: undefined, isNobodys };
  return { obstacle: makerId === userId ? 'own' : 'may-be-own', isNobodys };
}

/**
 * Keeps users as they are until the transaction ends, so that nobody is disabled or loses a role between a
 * check and its effect.
 */
export async function holdPeople(tx: Queries, ids: readonly (number | null | undefined)[]): Promise<void> {
  await tx.query(sql`select id from users where id = any (${known(ids)}::integer[]) order by id for share`);
}

/**
 * Returns whether two people could ever approve. Disabling one of them, or taking a role away, does not
 * change that: otherwise an owner could remove the second person, and be alone again.
 */
async function areTwoPeople(db: Queries): Promise<boolean> {
  // A second account that nobody else has confirmed is not counted.
  const [row] = await db.query<{ count: number }>(sql`
    select count(*)::integer as count from (select from users where was_approver limit 2) u`);
  return (row?.count ?? 0) > 1;
}

/**
 * Returns whether an account of the machine has to break the glass: once two people could approve, or once
 * the operator has chosen the delay. Until then, the operator sets the service up with the command line.
 */
export async function isGlassClosed({ db }: { readonly db: Queries }): Promise<boolean> {
  return (await areTwoPeople(db)) || (await readSettings(db)).approvalMode === 'delay';
}

/** Returns whether a user is the only person who could ever approve, and can do so now. */
export async function isOnlyPerson(db: Queries, userId: number): Promise<boolean> {
  const [approver] = await db.query(sql`
select from users
where id = ${userId} and was_approver and is_person(id) and roles && array['owner', 'finance']`);
  return approver !== undefined && !(await areTwoPeople(db));
}

const ON_MACHINE: Condition = {
  text: 'the command line confirms it, and not a person',
  applies: ({ principal }) => principal.kind === 'command-line',
};

const LINK_OF_MACHINE: Condition = {
  text: 'the command line printed the link, so that nobody knows who has it',
  async applies({ service: { db } }, { id }) {
    const user = await findUser(db, toId(String(id)));
    return user?.hasPrintedLink === true && !user.confirmed;
  },
};

const confirm = changing({
  name: 'user.confirm',
  title: 'Confirm the account',
  summary: 'Confirm that an account belongs to the person it names, and not to those who invited them',
  description:
    'Until then it approves nothing, and those who made, approved or received its link do not approve what ' +
    'it proposes. Somebody else confirms it.',
  path: '/users/:id/confirm',
  input: { id: NamedUser },
  output: UserSchema,
  isForPeople: true,
  roles: MONEY,
  approval: twoPeople({
    why: 'It decides who counts as another person.',
    when: [ON_MACHINE, LINK_OF_MACHINE],
  }),
  agreement: {
    sentence: 'Confirm that the account {email} of {merchant} belongs to the person it names',
    of: ofUser,
  },
  risk: 'step-up',
  run: (caller, { id }) =>
    changeUser(caller, toId(id), async (tx, user) => {
      if (user.state !== 'active')
        throw new Problem(
          'conflict',
          'only somebody who has enrolled, and is not disabled, can be confirmed',
        );
      if (user.confirmed) return { result: user };
      const confirmers = known([caller.principal.userId, caller.checkerId]);
      const [{ makers } = { makers: [] }] = await tx.query<Makers>(
        sql`select people_behind(array[${user.id}::integer]) as makers`,
      );
      if (confirmers.some((each) => makers.includes(each)))
        throw new Problem(
          'forbidden',
          'this account may be yours: somebody else, who does not know its link, confirms it',
        );
      if ((await tx.query(findPersons(confirmers))).length < confirmers.length)
        throw new Problem('forbidden', 'your own account has to be confirmed first');
      const now = caller.service.clock();
      // The command line confirms without a person.
      const values = sql`confirmed_at = ${now}, confirmed_by = ${confirmers[0] ?? null}`;
      const before = { mayBelongTo: makers.filter((each) => each !== user.id) };
      const audited = { action: 'user.confirm', before, after: { confirmed: true } };
      return { result: await updateUser(tx, user.id, values), audited };
    }),
});

export const OPERATIONS = tableOf(confirm);
