import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { exampleOf } from '../../src/http/operator/openapi.ts';
import type { AnyOperation } from '../../src/operation.ts';
import { PORTAL_OPERATIONS } from '../../src/operations/portal.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { parametersOf } from '../../src/schema.ts';
import { addEndpoint } from '../../src/webhooks/endpoints.ts';
import { type Browser, enrolled } from '../support/browser.ts';
import { asOperator } from '../support/harness.ts';
import { operatorApi } from '../support/operator.api.ts';
import { makeVouchers } from '../support/operator.ts';
import { asOwner } from '../support/owner.ts';
import { until } from '../support/until.ts';

/** The owner of a merchant asks every operation of the portal for what is somebody else's. */

const api = operatorApi();
let own: Browser;
/** What another merchant has, and the operator, by what an operation names. */
let foreign: Readonly<Record<string, string>>;

const ABSENT: typeof foreign = {
  ...{
    batches: '00000000-0000-7000-8000-000000000000',
    transactions: '00000000-0000-7000-8000-000000000000',
  },
  ...{ requests: '00000000-0000-7000-8000-000000000000', deliveries: '00000000-0000-7000-8000-000000000000' },
  ...{ 'api-keys': 'key_thatThereIsNo000', keyId: 'key_thatThereIsNo000' },
  ...{ webhooks: '999999', users: '999999', settlements: '999999', approvals: '999999', endpoint: '999999' },
  ...{ after: '999999-1', serialNumber: '99999999999' },
};

/** Fields outside the path that name something; all others name nothing that anybody owns. */
const NAMING = ['keyId', 'endpoint', 'after', 'serialNumber'] as const;
const NAMES_NOTHING = [
  ...[
    'reason',
    'cursor',
    'limit',
    'sort',
    'code',
    'pin',
    'amount',
    'reference',
    'refundReference',
    'gtin',
    'value',
  ],
  ...[
    'at',
    'days',
    'from',
    'to',
    'quantity',
    'product',
    'expiryDate',
    'status',
    'format',
    'language',
    'again',
  ],
  ...[
    'passphrase',
    'downloadApproval',
    'waiting',
    'forMe',
    'mine',
    'comment',
    'effect',
    'state',
    'line',
    'open',
  ],
  ...['currency', 'account', 'sum', 'kind', 'issueMonth', 'policy', 'setsApart', 'european', 'scopes'],
  ...['networks', 'expiresAt', 'overlap', 'reached', 'flow', 'url', 'pull', 'events', 'full', 'failedSince'],
  ...['email', 'name', 'roles'],
  // They choose among the caller's own entries.
  ...['issuerId', 'batch', 'eventId'],
];

before(async () => {
  const { testService } = api;
  const { service } = testService;
  const [one, other] = [await testService.createMerchant(), await testService.createMerchant()];
  ({ browser: own } = await enrolled(testService, { email: 'one@example.com', merchantId: one.id }));
  const { person } = await enrolled(testService, { email: 'other@example.com', merchantId: other.id });
  const { context } = await authenticate(service, other.authorization);
  const [{ code, pin, serialNumber }] = await makeVouchers(context, 'theirs', 1);
  const { transaction } = await redeem(context, { code, pin, amount: 5, reference: 'sale-1' });
  const wanted = { merchantId: other.id, events: null, full: false };
  const { id: webhook } = await addEndpoint(
    asOperator(service),
    { ...wanted, url: 'https://192.0.2.1/' },
    true,
  );
  const { id: pull } = await addEndpoint(asOperator(service), { ...wanted, url: null }, true);
  const { body: batches } = await api.get(`/batches?merchantId=${other.id}`);
  const { body: proposed } = await api.post('/floats/refund', {
    ...{ merchantId: String(other.id), amount: 1, reference: 'refund-1', reason: 'asked' },
  });
  const [settlement] = await asOwner<{ id: number }>(
    testService.url,
    `insert into scrip.settlements (
       merchant_id, currency, decimals, first_day, last_day, starts_at, ends_at, zone, carried_minor,
       closing_minor, outstanding_minor, payable_minor, due_on, closing_hash, root, made_by, made_at)
     values (${other.id}, 'USD', 2, '2026-03-01', '2026-03-01', '2026-03-01Z', '2026-03-02Z', 'UTC', 0, 0, 0, 0,
       '2026-03-02', '', sha256(''), 'the test', now()) returning id`,
  );
  foreign = {
    ...{ batches: batches.items[0].transactionId, transactions: transaction.transactionId },
    ...{ requests: transaction.transactionId, deliveries: ABSENT['deliveries'] as string },
    ...{ 'api-keys': other.keyId, keyId: other.keyId, webhooks: String(webhook), users: String(person.id) },
    ...{
      settlements: String(settlement?.id),
      approvals: String(proposed.approval.id),
      endpoint: String(pull),
    },
    ...{ after: `${pull}-0`, serialNumber: String(serialNumber) },
  };
});

/** What a parameter of a path names: the word before it. */
const wordBefore = (path: string, name: string) =>
  path.split('/').at(path.split('/').indexOf(`:${name}`) - 1) ?? '';

/** Asks an operation for something, by the ids. @returns the answer without the ids */
async function ask(operation: AnyOperation, ids: typeof foreign, field?: string) {
  const { method, path } = operation;
  const url = parametersOf(path).reduce(
    (text, name) => text.replace(`:${name}`, ids[wordBefore(path, name)] ?? assert.fail(`${path} ${name}`)),
    path,
  );
  const given = { ...exampleOf(operation), ...(field !== undefined && { [field]: ids[field] }) };
  const query = new URLSearchParams(
    Object.entries(given).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const { status, text } =
    method === 'GET'
      ? await own.get(`${url}${query.size > 0 ? `?${query}` : ''}`)
      : await own.send(method, url, given);
  const asked =
    field === undefined
      ? parametersOf(path).map((name) => ids[wordBefore(path, name)])
      : [ids[field], ids['endpoint']];
  const plain = asked.reduce<string>(
    (rest, id) => rest.replaceAll(new RegExp(`\\b${id}\\b`, 'g'), 'ID'),
    text,
  );
  // Each request has an id and a time of its own.
  return { status, text: plain.replace(/"(requestId|id|at)":"[^"]+"/g, '') };
}

describe('what is of another merchant, or of the operator', () => {
  test('is named by the fields that are tried below, and by no others', () => {
    const fields = new Set(
      PORTAL_OPERATIONS.flatMap(({ path, input }) =>
        Object.keys(input.properties).filter((name) => !parametersOf(path).includes(name)),
      ),
    );
    assert.deepEqual([...fields].sort(), [...NAMING, ...NAMES_NOTHING].sort());
  });

  for (const operation of PORTAL_OPERATIONS) {
    const named = parametersOf(operation.path).filter((name) => name !== 'report');
    const fields = NAMING.filter((name) => name in operation.input.properties);
    if (named.length === 0 && fields.length === 0) continue;
    test(`is for ${operation.name} like what does not exist`, async () => {
      for (const field of named.length > 0 ? [undefined] : fields) {
        const theirs = await ask(operation, foreign, field);
        const nothing = await ask(operation, ABSENT, field);
        assert.deepEqual(theirs, nothing, `${operation.name} ${field}`);
        assert.ok([200, 404].includes(theirs.status), `${theirs.status} ${theirs.text}`);
      }
    });
  }

  test('is in the list of declines like what does not exist', async () => {
    const find = (name: string) => PORTAL_OPERATIONS.find((each) => each.name === name) as AnyOperation;
    const declined = async (ids: typeof foreign) => {
      await ask(find('till.activate'), ids, 'serialNumber');
      // Declines are stored a moment later.
      return until('the decline', async () => {
        const { text } = await ask(find('decline.list'), ids, 'serialNumber');
        return JSON.parse(text.replace(/\{,+/g, '{')).items.at(0);
      });
    };
    const [theirs, nothing] = [await declined(foreign), await declined(ABSENT)];
    assert.equal(theirs.code, '14');
    assert.deepEqual(theirs, nothing);
  });
});
