import { send } from '../api.ts';

/** Passkeys: the browser asks a device, and the service checks its answer. */

type Json = Readonly<Record<string, unknown>>;

export function canUsePasskeys(): boolean {
  return typeof PublicKeyCredential === 'function' && 'parseRequestOptionsFromJSON' in PublicKeyCredential;
}

/** Asks a device to prove the user's identity. */
async function ask(path: string): Promise<Json> {
  const options = await send<PublicKeyCredentialRequestOptionsJSON>('POST', path, { body: {} });
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  const found = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential | null;
  if (!found) throw new Error('no passkey');
  return found.toJSON() as unknown as Json;
}

export async function signInByPasskey(): Promise<Json> {
  const passkey = await ask('/session/passkey/options');
  return send('POST', '/session', { body: { passkey } });
}

export async function stepUpByPasskey(): Promise<void> {
  const passkey = await ask('/session/step-up/options');
  await send('POST', '/session/step-up', { body: { passkey } });
}

export async function addPasskey(name: string): Promise<void> {
  const options = await send<PublicKeyCredentialCreationOptionsJSON>('POST', '/account/passkeys/options', {
    body: {},
  });
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
  const made = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential | null;
  if (!made) throw new Error('no passkey');
  await send('POST', '/account/passkeys', { body: { name, response: made.toJSON() } });
}
