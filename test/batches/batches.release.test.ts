import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accept, type Browser, enrolled, PASSWORD, signIn } from '../support/browser.ts';
import { A } from '../support/dialects.ts';
import { Till } from '../support/till.ts';

/** A second person of the merchant for downloads in the portal. */

const idOf = ({ body, text }: Awaited<ReturnType<Browser['post']>>): string => {
  assert.ok(body.approval, text);
  return body.approval.id;
};

test('where a merchant has chosen so, another person of the merchant approves each download', async (t) => {
  const till = await Till.open(t);
  const { testService: listening, merchant } = till;
  const operator = await enrolled(listening, { email: 'olga@example.com' });
  const { browser: ada } = await enrolled(listening, { merchantId: merchant.id });
  const other = await Till.another(listening);
  const { browser: stranger } = await enrolled(listening, { merchantId: other.merchant.id });
  const join = async (email: string, role: string) => {
    const { id, link } = (await ada.post('/users', { email, roles: [role] })).body;
    return { id, ...(await accept(listening, link.slice(link.indexOf('#') + 1), 'portal')) };
  };
  const confirm = async ({ id }: { id: string }) => {
    const confirmed = await operator.browser.post(`/users/${id}/confirm`);
    assert.equal(confirmed.body.confirmed, true, confirmed.text);
  };
  const choose = (by: Browser, downloadApproval: boolean) =>
    by.post('/merchant/download-approval', { downloadApproval });
  const [bob, second, cashier] = [
    await join('bob@example.com', 'operations'),
    await join('ada.two@example.com', 'operations'),
    await join('carl@example.com', 'cashier'),
  ];
  assert.equal((await choose(ada, true)).body.code, 'conflict', 'nobody else is confirmed');
  await confirm(bob);
  await confirm(cashier);
  assert.equal((await choose(ada, true)).body.downloadApproval, true);

  const { data } = await till.done(A.generate('order-1', 2, 25));
  const path = `/batches/${data.transactionId}`;
  const download = (by: Browser, more: object = {}) =>
    by.post(`${path}/download`, { format: 'csv', ...more });
  assert.equal((await download(ada)).body.code, 'approval-required');
  const asked = await ada.post(`${path}/release`);
  const id = idOf(asked);
  assert.equal(asked.status, 202);
  const approve = (by: Browser, of = id) => by.post(`/approvals/${of}/approve`);
  const refusals = [];
  for (const by of [ada, second.browser, cashier.browser, stranger, operator.browser])
    refusals.push((await approve(by)).body.code);
  assert.deepEqual(refusals, ['forbidden', 'forbidden', 'forbidden', 'not-found', 'not-found']);
  for (const by of [stranger, operator.browser]) {
    assert.deepEqual((await by.get('/approvals')).body.items, []);
    assert.equal((await by.post(`/approvals/${id}/reject`, { comment: 'no' })).body.code, 'not-found');
  }
  await ada.post(`/users/${bob.id}/disable`);
  assert.equal((await approve(bob.browser)).status, 401);
  await ada.post(`/users/${bob.id}/enable`);
  const again = await signIn(
    listening,
    { ...bob, email: 'bob@example.com', password: PASSWORD, recoveryCodes: [] },
    'portal',
  );
  assert.equal((await approve(again)).body.state, 'APPROVED');

  assert.equal((await download(again)).body.code, 'approval-required', 'it is of the person who asked');
  const file = await download(ada);
  assert.equal(file.text.trim().split('\n').length, 3);
  const why = { again: true, reason: 'the printer jammed' };
  assert.equal((await download(ada, why)).body.code, 'approval-required', 'it is used up');
  assert.equal((await approve(again, idOf(await ada.post(`${path}/release`)))).body.state, 'APPROVED');
  assert.equal((await download(ada)).body.code, 'conflict');
  assert.equal((await download(ada, why)).status, 200, 'a refusal does not use it up');

  const off = idOf(await choose(ada, false));
  assert.equal((await approve(ada, off)).body.code, 'forbidden');
  assert.equal((await approve(again, off)).body.state, 'APPROVED');
  assert.equal((await download(ada, why)).status, 200);
});
