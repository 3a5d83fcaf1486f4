import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PORTAL_OPERATIONS } from '../../src/operations/portal.ts';
import { accept, Browser, enrolled, signIn } from '../support/browser.ts';
import { A } from '../support/dialects.ts';
import { makeToken } from '../support/operator.api.ts';
import { Till } from '../support/till.ts';

/** Attacks by one person of a merchant with a second account, on what two people of a merchant agree on. */

type Post = (path: string, body?: object) => ReturnType<Browser['post']>;

const RULES: Readonly<Record<string, (post: Post, batch: string) => ReturnType<Post>>> = {
  'batch.release': (post, batch) => post(`/batches/${batch}/release`),
  'merchant.set-download-approval': (post) =>
    post('/merchant/download-approval', { downloadApproval: false }),
};

test('all that two people of a merchant agree on is attacked below, and no merchant confirms accounts', () => {
  const ofTwo = PORTAL_OPERATIONS.filter(({ approval }) => approval?.people === 2);
  assert.deepEqual(ofTwo.map(({ name }) => name).sort(), Object.keys(RULES));
  assert.ok(!PORTAL_OPERATIONS.some(({ name }) => name === 'user.confirm'));
});

test('no account that a person of a merchant has made or taken over is another person', async (t) => {
  const till = await Till.open(t);
  const { testService: listening, merchant } = till;
  const operator = await enrolled(listening, { email: 'olga@example.com' });
  const { browser: stranger } = await enrolled(listening, {
    email: 'ada@example.org',
    merchantId: (await Till.another(listening)).merchant.id,
  });
  const { person, browser: ada } = await enrolled(listening, { merchantId: merchant.id });
  const enroll = ({ link }: { link: string }) =>
    accept(listening, link.slice(link.indexOf('#') + 1), 'portal');
  const join = async (by: Browser, email: string) => {
    const { body } = await by.post('/users', { email, roles: ['owner'] });
    return { id: body.id, ...(await enroll(body)) };
  };
  const [bob, taken] = [await join(ada, 'bob@example.com'), await join(ada, 'carl@example.com')];
  for (const { id } of [bob, taken])
    assert.equal((await operator.browser.post(`/users/${id}/confirm`)).body.confirmed, true);
  const straw = await join(ada, 'straw@example.com');
  const token = await makeToken(listening, ['owner'], merchant.id);
  const { data } = await till.done(A.generate('order-1', 2, 25));
  const on = await ada.post('/merchant/download-approval', { downloadApproval: true });
  assert.equal(on.body.downloadApproval, true, on.text);

  const of =
    (browser: Browser): Post =>
    (path, body = {}) =>
      browser.post(path, body);
  const byAda = of(ada);
  const seconds: Readonly<Record<string, Post>> = {
    'an account that she invited': of(straw.browser),
    'an account that this one invited': of((await join(straw.browser, 'two@example.com')).browser),
    'an account of another person, which she took over': of(
      (await enroll((await ada.post(`/users/${taken.id}/reset-2fa`)).body)).browser,
    ),
    'another session': of(await signIn(listening, person, 'portal')),
    'a token': (path, body = {}) =>
      new Browser(listening.baseUrl, 'portal').send('POST', path, body, { authorization: `Bearer ${token}` }),
  };
  const strangers: Readonly<Record<string, Post>> = {
    'an account at another merchant': of(stranger),
    'an account at the operator': of(operator.browser),
  };
  for (const [rule, propose] of Object.entries(RULES)) {
    const proposed = await propose(byAda, data.transactionId);
    assert.equal(proposed.status, 202, proposed.text);
    const path = `/approvals/${proposed.body.approval.id}/approve`;
    const approve = async (post: Post, of = path) => {
      const { body } = await post(of);
      return body.code ?? body.state;
    };
    for (const [who, post] of Object.entries(seconds)) {
      assert.equal(await approve(post), 'forbidden', `${rule}: ${who} approves`);
      const other = await propose(post, data.transactionId);
      if (who === 'a token') assert.equal(other.body.code, 'forbidden');
      else
        assert.equal(
          await approve(byAda, `/approvals/${other.body.approval.id}/approve`),
          'forbidden',
          `${rule}: she approves what ${who} proposed`,
        );
    }
    for (const [who, post] of Object.entries(strangers))
      assert.equal(await approve(post), 'not-found', `${rule}: ${who}`);
    assert.equal(await approve(of(bob.browser)), 'APPROVED', rule);
  }
});
