import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openInvitation } from '../../src/people/enroll.ts';
import { codeOf } from '../support/browser.ts';
import { Operator } from '../support/operator.ts';
import { typed } from '../support/scrip.ts';

const operator = Operator.ofTests();

describe('scrip user', () => {
  test('invite prints a link whose token follows the #, so that no proxy logs it', async () => {
    const made = await operator.json`user invite Ada@Example.com --role owner`;
    assert.deepEqual(Object.keys(made), ['id', 'link', 'expiresAt']);
    const [, token = ''] =
      /^http:\/\/localhost:8080\/console\/enroll#([A-Za-z0-9_-]{43})$/.exec(made.link) ?? [];
    const at = { service: operator.testService.service, door: 'operator' } as const;
    const opened = await openInvitation(at, token, 'browser');
    assert.deepEqual([opened.email, opened.name, opened.roles], ['ada@example.com', 'ada', ['owner']]);
    assert.equal(codeOf(opened.totp.secret, new Date()).length, 6);
    const [listed] = await operator.json`user list`;
    assert.deepEqual([listed.id, listed.state, listed.factors], [made.id, 'invited', []]);
  });

  test('invite for a merchant links to its portal, and accepts only roles of the portal', async () => {
    const { id } = await operator.json`merchant create --name Kiosk`;
    const invite = (...roles: string[]) =>
      operator.run`user invite bob@example.com --merchant ${id} ${roles.flatMap((role) => ['--role', role])}`;
    assert.match((await invite('cashier', 'viewer')).out, /\/portal\/enroll#/);
    const { status, err } = await invite('auditor');
    assert.equal(status, 2);
    assert.match(err, /^scrip: --role of a merchant must be some of owner, finance, operations/);
    const users = await operator.json`user list --merchant ${id}`;
    assert.deepEqual(users[0].roles, ['cashier', 'viewer']);
  });

  test('names an option by its own name, if that is shorter than the field of the operation', async () => {
    const token = ['token', 'create', '--role', 'support'];
    await operator.fails(/^scrip: --expires must be in the future/, ...typed`${token} --expires 2020-01-01`);
    await operator.fails(/^scrip: --expires must be at most/, ...token, '--expires=2199-01-01');
  });

  test('finds a user by email address or id, and reports an unknown one', async () => {
    const { id } = await operator.json`user invite eve@example.com --role support`;
    assert.deepEqual((await operator.json`user set-roles ${id} --role finance`).roles, ['finance']);
    assert.equal((await operator.json`user disable eve@example.com`).state, 'disabled');
    assert.match((await operator.run`user reset-2fa eve@example.com`).err, /disabled: enable it first/);
    assert.equal((await operator.json`user enable EVE@example.com`).state, 'invited');
    assert.deepEqual(await operator.json`user end-sessions ${id}`, { id, ended: 0 });
    assert.match((await operator.json`user reset-2fa ${id}`).link, /\/console\/enroll#/);
    const { status, err } = await operator.run`user disable nobody@example.com`;
    assert.deepEqual([status, err], [1, 'scrip: there is no such user: `scrip user list` shows them\n']);
  });
});
