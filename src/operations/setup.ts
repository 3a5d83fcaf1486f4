import Type from 'typebox';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { NOTED_BACKUP } from '../monitor/state.ts';
import { readLastBackup } from '../monitor/status.ts';
import { reading, tableOf } from '../operation.ts';
import { GOVERN } from '../principal.ts';
import { DEFAULT_PRODUCT } from '../products/products.ts';
import { OPERATOR } from '../webhooks/outbox.ts';

/** The way of an owner from an empty installation to the first redemption, and what keeps it safe. */

const Done = (description: string) => Type.Boolean({ description });

/** The steps, in the order in which an owner takes them. */
const STEPS = {
  person: Done('A second person of the operator has an account, or an invitation that has not expired.'),
  product: Done(
    'A person has created a product, or changed `DEFAULT`: the service alone has chosen its first terms.',
  ),
  merchant: Done('There is a merchant.'),
  key: Done('An API key is valid.'),
  float: Done('A float was topped up.'),
  vouchers: Done('Vouchers were ordered.'),
  redemption: Done('A voucher was redeemed.'),
  backup: Done('A backup was made from the data folder, or noted.'),
  alert: Done('The operator has an enabled webhook endpoint, or metrics are on.'),
};

type Step = keyof typeof STEPS;

const show = reading({
  name: 'setup.show',
  summary: 'Get which steps from an empty installation to the first redemption are done',
  description: 'Each is read from the database and the settings: none can be ticked off.',
  path: '/setup',
  input: {},
  output: Type.Object(STEPS),
  roles: GOVERN,
  async run({ service: { readDb, clock, deployment, hasMetrics } }) {
    const { dataDir } = await deployment();
    const [stored, [noted], made] = await Promise.all([
      readSteps(readDb, clock()),
      readDb.query(NOTED_BACKUP),
      dataDir === undefined ? undefined : readLastBackup(dataDir),
    ]);
    const { alert, ...others } = stored;
    return {
      ...others,
      backup: noted !== undefined || made !== undefined,
      alert: alert || hasMetrics === true,
    };
  },
});

/** Reads the steps that the database can answer. Each look-up ends at the first row that it finds. */
async function readSteps(db: Queries, now: Date): Promise<Record<Exclude<Step, 'backup'>, boolean>> {
  const [row] = await db.query<Record<Exclude<Step, 'backup' | 'redemption'>, boolean>>(sql`
select
  (select count(*) = 2 from (
    select from users
    where merchant_id is null and disabled_at is null
      and (enrolled_at is not null or invitation_expires_at > ${now})
    limit 2) people) as person,
  exists (select from products where code <> ${DEFAULT_PRODUCT})
    or exists (select from audit where subject = ${`product ${DEFAULT_PRODUCT}`}) as product,
  exists (select from merchants) as merchant,
  exists (select from api_keys where revoked_at is null and (expires_at is null or expires_at > ${now})) as key,
  exists (select from floats where topped_up_minor is not null) as float,
  exists (select from batches) as vouchers,
  exists (select from webhook_endpoints
    where merchant_id = ${OPERATOR} and disabled_at is null and removed_at is null) as alert`);
  // In the order of journal_by_merchant: a scan of the journal would read all vouchers of the first batches.
  const redeemed = await db.query(sql`
select from journal where batch_id is null and kind = 'REDEMPTION' order by merchant_id, id limit 1`);
  const { alert, ...others } = row as NonNullable<typeof row>;
  return { ...others, redemption: redeemed.length > 0, alert };
}

export const OPERATIONS = tableOf(show);
