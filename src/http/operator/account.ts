import type { RegistrationResponseJSON } from '@simplewebauthn/server';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import { changePassword, renewRecoveryCodes } from '../../people/account.ts';
import {
  addPasskey,
  askForPasskey,
  beginPasskey,
  listPasskeys,
  placeOf,
  removePasskey,
} from '../../people/passkeys.ts';
import { setCookie } from './cookies.ts';
import { Nothing, originOfPage, requireBegun, requireSession, route, type Serving, Text } from './person.ts';

/** Changes of people to their own account, and the questions of browsers to devices. */

const Password = Type.Object(
  { password: Text(1_000), newPassword: Text(1_000) },
  { additionalProperties: false },
);
const NewPasskey = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 100 }),
    response: Type.Unsafe<RegistrationResponseJSON>({ type: 'object' }),
  },
  { additionalProperties: false },
);

/** Serves a person's own account at one of the doors. */
export function serveAccount(app: FastifyInstance, serving: Serving): void {
  const { service, door } = serving;
  route(app, serving, 'POST', '/account/password', Password, async ({ body, request, origin }) => {
    const { session } = await requireSession(serving, request);
    await changePassword(service, session, body, origin);
    return undefined;
  });
  route(app, serving, 'POST', '/account/recovery-codes', Nothing, async ({ request, origin }) => {
    const { session } = await requireSession(serving, request);
    return { recoveryCodes: await renewRecoveryCodes(service, session, origin) };
  });
  route(app, serving, 'GET', '/account/passkeys', Nothing, async ({ request }) => {
    const { session } = await requireSession(serving, request);
    return { items: await listPasskeys(service, session.user.id), nextCursor: null };
  });
  route(app, serving, 'POST', '/account/passkeys/options', Nothing, async ({ request, reply }) => {
    const { session } = await requireSession(serving, request);
    const { options, token } = await beginPasskey(service, session, placeOf(originOfPage(request)));
    setCookie(reply, 'begun', door, token);
    return options;
  });
  route(app, serving, 'POST', '/account/passkeys', NewPasskey, async ({ body, request, reply, origin }) => {
    const { session } = await requireSession(serving, request);
    const place = placeOf(originOfPage(request));
    const added = await addPasskey(service, session, requireBegun(serving, request), body, place, origin);
    setCookie(reply, 'begun', door, undefined);
    return added;
  });
  route(app, serving, 'DELETE', '/account/passkeys/:id', Nothing, async ({ request, origin }) => {
    const { session } = await requireSession(serving, request);
    await removePasskey(service, session, (request.params as { id: string }).id, origin);
    return undefined;
  });
  route(app, serving, 'POST', '/session/passkey/options', Nothing, async ({ request, reply }) => {
    const { options, token } = await askForPasskey(service, placeOf(originOfPage(request)));
    setCookie(reply, 'begun', door, token);
    return options;
  });
  route(app, serving, 'POST', '/session/step-up/options', Nothing, async ({ request, reply }) => {
    const { session } = await requireSession(serving, request);
    const { options, token } = await askForPasskey(service, placeOf(originOfPage(request)), session);
    setCookie(reply, 'begun', door, token);
    return options;
  });
}
