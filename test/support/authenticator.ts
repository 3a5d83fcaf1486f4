import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import { isoCBOR } from '@simplewebauthn/server/helpers';

/** A device with a passkey, as a browser calls it: ES256, no attestation. */

const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const HAS_CREDENTIAL = 0x40;

const sha256 = (data: Uint8Array | string) => createHash('sha256').update(data).digest();
const base64url = (data: Uint8Array) => Buffer.from(data).toString('base64url');

type Behaviour = {
  /** The origin of the page: another one than ours for a phishing site. */
  readonly origin: string;
  /** Whether the owner gave a fingerprint or a PIN. */
  readonly verified?: boolean;
  /** A counter that does not grow, as a copy of the key has. */
  readonly counter?: number;
};

export class Authenticator {
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  readonly #id = randomBytes(32);
  #counter = 0;

  get id(): string {
    return base64url(this.#id);
  }

  #data(rpId: string, { verified = true, counter }: Behaviour, credential?: Uint8Array): Buffer {
    const flags = USER_PRESENT | (verified ? USER_VERIFIED : 0) | (credential ? HAS_CREDENTIAL : 0);
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter ?? ++this.#counter);
    return Buffer.concat([sha256(rpId), Buffer.from([flags]), count, ...(credential ? [credential] : [])]);
  }

  create(options: PublicKeyCredentialCreationOptionsJSON, behaviour: Behaviour): RegistrationResponseJSON {
    const { x = '', y = '' } = this.#keys.publicKey.export({ format: 'jwk' });
    const key = new Map<number, number | Uint8Array>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, new Uint8Array(Buffer.from(x, 'base64url'))],
      [-3, new Uint8Array(Buffer.from(y, 'base64url'))],
    ]);
    const length = Buffer.from([this.#id.length >> 8, this.#id.length & 0xff]);
    const credential = Buffer.concat([Buffer.alloc(16), length, this.#id, isoCBOR.encode(key)]);
    const authData = new Uint8Array(this.#data(options.rp.id ?? '', behaviour, credential));
    const parts: [string, unknown][] = [
      ['fmt', 'none'],
      ['attStmt', new Map()],
      ['authData', authData],
    ];
    const attestationObject = base64url(isoCBOR.encode(new Map(parts) as never));
    const clientDataJSON = clientData('webauthn.create', options.challenge, behaviour.origin);
    return {
      id: this.id,
      rawId: this.id,
      type: 'public-key',
      clientExtensionResults: {},
      response: { attestationObject, clientDataJSON, transports: ['internal'] },
    };
  }

  get(options: PublicKeyCredentialRequestOptionsJSON, behaviour: Behaviour): AuthenticationResponseJSON {
    const data = this.#data(options.rpId ?? '', behaviour);
    const clientDataJSON = clientData('webauthn.get', options.challenge, behaviour.origin);
    const signed = Buffer.concat([data, sha256(Buffer.from(clientDataJSON, 'base64url'))]);
    const signature = base64url(sign('sha256', signed, this.#keys.privateKey));
    return {
      id: this.id,
      rawId: this.id,
      type: 'public-key',
      clientExtensionResults: {},
      response: { authenticatorData: base64url(data), clientDataJSON, signature },
    };
  }
}

function clientData(type: string, challenge: string, origin: string): string {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false })).toString('base64url');
}
