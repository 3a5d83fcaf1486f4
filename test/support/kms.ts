import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { freePort } from '../../soak/process.ts';
import { findInstalled, standIn, startServer } from './stand-in.ts';

/** Key management services for tests: fakes, and moto's AWS KMS where it is installed. */

export const AWS_ENV = {
  AWS_ACCESS_KEY_ID: 'operator',
  AWS_SECRET_ACCESS_KEY: 'of-the-keys',
  AWS_REGION: 'eu-central-1',
};

export type StandIn = Awaited<ReturnType<typeof standIn>>;

/** Answers a request. `refuse` holds the status and body of a refusal. */
type Answer = (path: string, headers: Record<string, unknown>, body: Record<string, string>) => object;

class Refusal extends Error {
  readonly status: number;
  readonly body: object;
  constructor(status: number, body: object) {
    super();
    this.status = status;
    this.body = body;
  }
}

function listen(t: TestContext, answer: Answer): Promise<StandIn> {
  return standIn(t, async (request, response) => {
    const body = JSON.parse(
      Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>)).toString(),
    );
    response.setHeader('content-type', 'application/json');
    try {
      response.end(JSON.stringify(answer(request.url ?? '', request.headers, body)));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      response.writeHead(error.status).end(JSON.stringify(error.body));
    }
  });
}

const KEY = randomBytes(32);

function seal(text: Buffer, context: string): Buffer {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', KEY, nonce).setAAD(Buffer.from(context));
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
}

function open(sealed: Buffer, context: string): Buffer | undefined {
  try {
    const decipher = createDecipheriv('aes-256-gcm', KEY, sealed.subarray(0, 12));
    decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-16));
    return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]);
  } catch {
    return undefined;
  }
}

export const VAULT_TOKEN = 'hvs.of-the-service';

/** Vault's transit engine at `transit`, with the key `scrip`, as its API describes it. */
export function startVault(t: TestContext): Promise<StandIn> {
  return listen(t, (path, headers, body) => {
    if (headers['x-vault-token'] !== VAULT_TOKEN) throw new Refusal(403, { errors: ['permission denied'] });
    switch (path) {
      case '/v1/transit/encrypt/scrip': {
        const sealed = seal(Buffer.from(body['plaintext'] ?? '', 'base64'), 'vault');
        return { data: { ciphertext: `vault:v1:${sealed.toString('base64')}`, key_version: 1 } };
      }
      case '/v1/transit/decrypt/scrip': {
        const [, , sealed = ''] = (body['ciphertext'] ?? '').split(':');
        const text = open(Buffer.from(sealed, 'base64'), 'vault');
        if (!text) throw new Refusal(400, { errors: ['cipher: message authentication failed'] });
        return { data: { plaintext: text.toString('base64') } };
      }
      default:
        throw new Refusal(404, { errors: ['no handler for route'] });
    }
  });
}

/** AWS KMS with the key `alias/scrip`. It does not check signatures. */
export function startAws(t: TestContext): Promise<StandIn> {
  return listen(t, (_path, headers, body) => {
    const context = JSON.stringify(body['EncryptionContext']);
    if (body['KeyId'] !== 'alias/scrip')
      throw new Refusal(400, { __type: 'NotFoundException', message: 'no such alias' });
    if (headers['x-amz-target'] === 'TrentService.Encrypt') {
      const sealed = seal(Buffer.from(body['Plaintext'] ?? '', 'base64'), context);
      return { CiphertextBlob: sealed.toString('base64'), KeyId: 'k' };
    }
    const text = open(Buffer.from(body['CiphertextBlob'] ?? '', 'base64'), context);
    if (!text) throw new Refusal(400, { __type: 'InvalidCiphertextException', message: '' });
    return { Plaintext: text.toString('base64'), KeyId: 'k' };
  });
}

/** moto's AWS; undefined, with a diagnostic of the test, where it is not installed. */
export async function startMoto(t: TestContext): Promise<string | undefined> {
  const moto = findInstalled(t, 'python', 'moto');
  if (moto === undefined) return undefined;
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const args = ['-m', 'moto.server', '-H', '127.0.0.1', '-p', String(port)];
  await startServer(t, url, 'python3', args, { PATH: process.env['PATH'] ?? '', PYTHONPATH: moto });
  return url;
}
