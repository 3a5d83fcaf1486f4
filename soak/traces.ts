import { type Sending, shapeOf, type Trace, whyRefused } from '../model/traces.ts';
import type { Queries } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';

/** Checks what a soak has seen of each reference against the model of the protocol (model/traces.ts). */

/** A request under a reference, with all its sendings. */
export type Asked = {
  readonly merchantId: number;
  readonly operation: 'redeem' | 'activate';
  readonly reference: string;
  readonly serialNumber: bigint;
  readonly amountMinor: bigint;
  readonly sendings: readonly Omit<Sending, 'request'>[];
};

export type Traces = {
  readonly traces: number;
  /** Requests, answers, rows and claims. */
  readonly events: number;
  /** The traces that differ in more than their references, times and ids. */
  readonly shapes: number;
  /** Why the model refuses a trace, in a sentence. */
  readonly refused: string[];
};

type Row = Pick<Asked, 'serialNumber' | 'amountMinor'> & { readonly key: string; readonly id: string };

const PAGE = 5_000;

/** @param owner a connection that may read all tables */
export async function checkTraces(
  owner: Queries,
  asked: readonly Asked[],
  isSharded: boolean,
): Promise<Traces> {
  const rows = Map.groupBy(await readRows(owner), ({ key }) => key);
  const claims = new Map((await readClaims(owner)).map(({ key, id }) => [key, id]));
  const byKey = Map.groupBy(asked, keyOf);
  const accepted = new Set<string>();
  const result = { traces: 0, events: 0, refused: [] as string[] };
  for (const key of new Set([...byKey.keys(), ...rows.keys()])) {
    const sent = byKey.get(key) ?? [];
    const requests = [...new Set(sent.map(termsOf))];
    const trace: Trace = {
      reference: key,
      isSharded,
      sendings: sent.flatMap((request) =>
        request.sendings.map((each) => ({ ...each, request: requests.indexOf(termsOf(request)) })),
      ),
      rows: (rows.get(key) ?? []).map(({ id, ...row }) => ({ id, request: requests.indexOf(termsOf(row)) })),
      claim: claims.get(key) ?? null,
    };
    result.traces++;
    result.events += 2 * trace.sendings.length + trace.rows.length + (trace.claim === null ? 0 : 1);
    const shape = shapeOf(trace);
    if (accepted.has(shape)) continue;
    const reason = whyRefused(trace);
    if (reason === undefined) accepted.add(shape);
    else result.refused.push(reason);
  }
  return { ...result, shapes: accepted.size };
}

const keyOf = ({ merchantId, operation, reference }: Asked) => `${merchantId} ${operation} ${reference}`;

/** What two requests under a reference have in common if one is a copy of the other. */
const termsOf = ({ serialNumber, amountMinor }: Pick<Asked, 'serialNumber' | 'amountMinor'>) =>
  `${serialNumber} ${amountMinor}`;

const FIRST = '00000000-0000-0000-0000-000000000000';

async function readRows(owner: Queries): Promise<Row[]> {
  const rows: Row[] = [];
  for (let after = FIRST; ; ) {
    const page = await owner.query<Row>(sql`
select merchant_id || case kind when 'REDEMPTION' then ' redeem ' else ' activate ' end || reference as key,
  id::text as id, serial_number as "serialNumber", amount_minor as "amountMinor"
from scrip.journal
where reference is not null and original_id is null and batch_id is null
  and kind in ('ACTIVATION', 'REDEMPTION') and id > ${after}::uuid order by id limit ${PAGE}`);
    rows.push(...page);
    if (page.length < PAGE) return rows;
    after = page.at(-1)?.id ?? after;
  }
}

function readClaims(owner: Queries): Promise<{ key: string; id: string }[]> {
  return owner.query(sql`
select merchant_id || ' ' || operation || ' ' || reference as key, id::text as id from scrip.claims
where operation in ('redeem', 'activate')`);
}
