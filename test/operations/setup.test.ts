import assert from 'node:assert/strict';
import { test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { sql } from '../../src/db/sql.ts';
import { perform } from '../../src/operations/perform.ts';
import { invitations } from '../../src/people/invite.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { COMMAND_LINE } from '../support/harness.ts';
import { operatorApi } from '../support/operator.api.ts';
import { makeVouchers } from '../support/operator.ts';

const api = operatorApi();
const done: string[] = [];

/** Asserts that the steps so far are done, and one more, and no other. */
async function isNow(...steps: string[]) {
  done.push(...steps);
  const { body } = await api.get('/setup');
  assert.deepEqual(
    Object.keys(body).filter((step) => body[step]),
    done,
  );
}

async function invite(email: string) {
  const input = { email, roles: ['support'] };
  await perform(invitations.invite as never, {
    service: api.testService.service,
    principal: COMMAND_LINE,
    input,
  });
}

async function posts(path: string, body: object) {
  const answer = await api.post(path, body);
  assert.ok(answer.status < 300, JSON.stringify(answer.body));
  return answer.body;
}

test('each step of an empty installation is done when its effect is there', async () => {
  const { service, clock } = api.testService;
  await isNow();
  await invite('first@example.com');
  await isNow();
  await invite('second@example.com');
  await isNow('person');
  const edited = await api.call('PATCH', '/operator/v1/products/DEFAULT', { name: 'Gift card' });
  assert.equal(edited.status, 200, JSON.stringify(edited.body));
  await isNow('product');
  const merchant = await api.testService.createMerchant();
  const { context } = await authenticate(service, merchant.authorization);
  const [voucher] = await makeVouchers(context, 'setup', 1);
  await isNow('merchant', 'key', 'float', 'vouchers');
  await redeem({ ...context, now: clock.now() }, { ...voucher, amount: 1, reference: 'first' } as never);
  await isNow('redemption');
  await posts('/backups', { place: 's3://vault/first' });
  await isNow('backup');
  const { id } = await posts('/webhooks', { url: 'https://93.184.216.34/events' });
  await isNow('alert');
  await service.db.query(sql`
update webhook_endpoints set disabled_at = now(), disabled_reason = 'test' where id = ${Number(id)}`);
  assert.equal((await api.get('/setup')).body.alert, false);
  assert.equal(
    (await api.get('/setup', { authorization: `Bearer ${await api.token(['finance'])}` })).status,
    403,
  );
});

test('the installation is checked as by the command, for those who see everything', async () => {
  const { status, body } = await api.get('/installation/check');
  assert.equal(status, 200, JSON.stringify(body));
  const found = new Map<string, { state: string; advice: string | null }>(
    body.findings.map((each: { check: string }) => [each.check, each]),
  );
  assert.equal(found.get('versions')?.state, 'ok');
  assert.match(found.get('archive')?.advice ?? '', /archive_mode/);
  const states = [...found.values()].map(({ state }) => state);
  assert.equal(body.ok, !states.includes('failure'));
});
