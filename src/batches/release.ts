import Type from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { changeMerchant, MerchantWithFloats, ofMerchant, requireMerchant } from '../merchants/merchants.ts';
import { type Caller, changing, NO_COMMAND, twoPeople } from '../operation.ts';
import { MANAGE } from '../principal.ts';
import { Problem } from '../problem.ts';
import { MerchantId, Time, TransactionId } from '../schema.ts';
import { DAY_MS } from '../time.ts';
import type { Batch } from './batch.ts';
import { requireExportable } from './export.ts';

/**
 * A second person for downloads: where a merchant has chosen so, another person of the merchant approves each
 * download of codes in the portal (docs/how-to/print.md, "From the portal").
 */

/** The roles that download codes in the portal, and approve that others do. */
const APPROVERS = MANAGE;

const WHY = 'Codes and PINs are money, and the merchant has chosen that two of its people agree.';

const release = changing({
  name: 'batch.release',
  title: 'Ask for the download',
  summary: 'Ask another person of the merchant to approve the download of a batch',
  description:
    'It is needed only where the merchant has chosen so. Once it is approved, the person who asked downloads ' +
    'the batch within 24 hours, once.',
  path: '/batches/:transactionId/release',
  command: NO_COMMAND,
  input: { transactionId: TransactionId },
  output: Type.Object({ transactionId: TransactionId, expiresAt: Time }),
  isForPeople: true,
  roles: MANAGE,
  approval: twoPeople({ why: WHY, isOfMerchant: true }),
  agreement: {
    sentence: 'Download the codes of order {reference}: {vouchers} vouchers',
    async of({ caller, input: { transactionId } }) {
      const { reference, quantity } = await requireExportable(caller.service, transactionId);
      return { reference, vouchers: quantity, link: `/batches/${transactionId}` };
    },
  },
  async run(caller, { transactionId }) {
    const { service, principal } = caller;
    const batch = await requireExportable(service, transactionId);
    const now = service.clock();
    const expiresAt = new Date(now.getTime() + DAY_MS);
    await service.db.transaction(async (tx) => {
      await tx.query(sql`
insert into batch_releases (batch_id, user_id, released_at, expires_at)
values (${batch.id}, ${principal.userId}, ${now}, ${expiresAt})`);
      await audit(tx, caller, {
        action: 'batch.release',
        subject: `batch ${transactionId}`,
        after: { to: principal.name, expiresAt },
      });
    });
    return { transactionId, expiresAt };
  },
});

/**
 * Uses up the approval of a download.
 * @throws Problem `approval-required` if there is none for the caller
 */
export async function useRelease(tx: Queries, { service, principal }: Caller, batch: Batch): Promise<void> {
  const now = service.clock();
  const used = await tx.query(sql`
update batch_releases set used_at = ${now} where used_at is null and id = (
  select id from batch_releases
  where batch_id = ${batch.id} and user_id = ${principal.userId}::integer and used_at is null
    and expires_at > ${now}
  order by id limit 1 for update)
returning id`);
  if (used.length > 0) return;
  throw new Problem(
    'approval-required',
    'another person of the merchant approves this download first: ask for it on the page of the batch',
  );
}

const setApproval = changing({
  name: 'merchant.set-download-approval',
  title: 'Second person for downloads',
  summary: 'Choose whether another person of the merchant approves each download of codes in the portal',
  description: 'Only two people can undo this choice. It does not concern the programs of the merchant.',
  path: '/merchant/download-approval',
  command: NO_COMMAND,
  input: {
    merchantId: MerchantId,
    downloadApproval: Type.Boolean({ title: 'Downloads need a second person' }),
  },
  output: MerchantWithFloats,
  isForPeople: true,
  roles: MANAGE,
  approval: twoPeople({
    why: WHY,
    when: [
      {
        text: 'downloads need a second person so far',
        async applies({ service, principal }) {
          const { downloadApproval } = await requireMerchant({ service }, String(principal.merchantId));
          return downloadApproval;
        },
      },
    ],
    approvers: APPROVERS,
    isOfMerchant: true,
  }),
  agreement: {
    sentence: 'Let one person of {merchant} download codes',
    of: (asked) => ofMerchant(asked, asked.input.merchantId),
  },
  async run(caller, { merchantId, downloadApproval }) {
    if (downloadApproval) await requireOther(caller);
    return changeMerchant(caller, merchantId, {
      action: 'merchant.set-download-approval',
      fields: ['downloadApproval'],
      set: sql`download_approval = ${downloadApproval}`,
    });
  },
});

/** @throws Problem `conflict` if nobody else could approve a download of the caller */
async function requireOther({ service, principal: { merchantId, userId } }: Caller): Promise<void> {
  const [other] = await service.db.query(sql`
select from users u
where u.merchant_id = ${merchantId} and u.id <> ${userId} and u.roles && ${APPROVERS}::text[]
  and is_person(u.id, u.merchant_id) and u.id <> all (people_behind(array[${userId}::integer]))
limit 1`);
  if (other) return;
  throw new Problem(
    'conflict',
    'nobody else could approve a download: invite an owner or a person for operations, whose account the ' +
      'operator then confirms',
  );
}

export const releases = { release, setApproval };
