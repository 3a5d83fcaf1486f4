import { StartError } from '../db/errors.ts';
import { readOrdinary } from '../private-file.ts';

/** A key management service, which seals the data key of a key file. It never sees a key of the ring. */
export type Kms = {
  /** The name in messages: `aws:…` or `vault:…`. */
  readonly name: string;
  /** Seals a data key. @throws StartError, one line */
  seal(dataKey: Buffer): Promise<string>;
  /** Opens a data key that `seal` sealed. @throws StartError, one line */
  open(sealed: string): Promise<Buffer>;
};

export type KmsSettings = {
  readonly kms?: string | undefined;
  readonly vaultTokenFile?: string | undefined;
};

const AWS = /^aws:(arn:aws[a-z-]*:kms:([a-z0-9-]+):\d+:(?:key|alias)\/[\w/-]+|alias\/[\w/-]+|[\w-]+)$/;
const VAULT =
  /^vault:(https:\/\/[^/]+|http:\/\/(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?)\/(.+)\/keys\/([\w.-]+)$/;
const TIMEOUT_MS = 10_000;
const ATTEMPTS = 3;
/** The encryption context. AWS compares it when it opens, and refuses a data key with another context. */
const CONTEXT = { purpose: 'scrip key ring' };

/** Whether a text names a usable key. */
export const isKms = (text: string): boolean => AWS.test(text) || VAULT.test(text);

/** Returns the key management service of the settings; undefined if there is none. It sends no request. */
export function findKms({ kms: name, vaultTokenFile }: KmsSettings): Kms | undefined {
  if (name === undefined) return undefined;
  const [, keyId, region] = AWS.exec(name) ?? [];
  return keyId === undefined ? vault(name, vaultTokenFile) : aws(name, keyId, region);
}

function aws(name: string, KeyId: string, region: string | undefined): Kms {
  const ask = async <Result>(run: (kms: Awaited<ReturnType<typeof load>>) => Promise<Result>) => {
    try {
      return await run(await load(region));
    } catch (error) {
      throw explainAws(error, name);
    }
  };
  const EncryptionContext = CONTEXT;
  return {
    name,
    seal: (dataKey) =>
      ask(async ({ client, EncryptCommand }) => {
        const { CiphertextBlob = [] } = await client.send(
          new EncryptCommand({ KeyId, Plaintext: dataKey, EncryptionContext }),
        );
        return Buffer.from(CiphertextBlob).toString('base64');
      }),
    open: (sealed) =>
      ask(async ({ client, DecryptCommand }) => {
        const CiphertextBlob = Buffer.from(sealed, 'base64');
        const { Plaintext = [] } = await client.send(
          new DecryptCommand({ KeyId, CiphertextBlob, EncryptionContext }),
        );
        return Buffer.from(Plaintext);
      }),
  };
}

/** Loaded on demand: the package is large, and few installations need it. */
async function load(region: string | undefined) {
  const { KMSClient, EncryptCommand, DecryptCommand } = await import('@aws-sdk/client-kms');
  const client = new KMSClient({
    ...(region === undefined ? {} : { region }),
    maxAttempts: ATTEMPTS,
    requestHandler: { connectionTimeout: TIMEOUT_MS, requestTimeout: TIMEOUT_MS },
  });
  return { client, EncryptCommand, DecryptCommand };
}

function explainAws(error: unknown, name: string): StartError {
  const { name: code, message, $metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode;
  if (status === undefined && /region/i.test(message))
    return new StartError(`AWS_REGION is not set: the KMS ${name} needs one`);
  if (code === 'CredentialsProviderError')
    return new StartError(
      `there are no AWS keys for the KMS ${name}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role`,
    );
  // An internal error of the service is temporary.
  if (status === undefined || status >= 500) return away(name, status ?? reasonOf(error));
  return refused(name, `${code}: ${message}`);
}

function vault(name: string, tokenFile: string | undefined): Kms {
  const [, base = '', mount = '', key = ''] = VAULT.exec(name) ?? [];
  const ask = async (verb: string, body: object, field: string): Promise<string> => {
    const token = await readToken(tokenFile);
    const url = `${base}/v1/${mount}/${verb}/${key}`;
    const { status, answer } = await post(name, url, token, body);
    const value = (answer['data'] as Record<string, unknown> | undefined)?.[field];
    if (status === 200 && typeof value === 'string') return value;
    // 503: Vault is sealed, or a standby without a leader.
    if (status >= 500 || status === 429) throw away(name, status);
    const errors = Array.isArray(answer['errors']) ? answer['errors'].join('; ').trim() : '';
    throw refused(name, `${status}${errors === '' ? '' : `: ${errors.replaceAll('\n', ' ')}`}`);
  };
  return {
    name,
    seal: (dataKey) => ask('encrypt', { plaintext: dataKey.toString('base64') }, 'ciphertext'),
    open: async (sealed) => Buffer.from(await ask('decrypt', { ciphertext: sealed }, 'plaintext'), 'base64'),
  };
}

async function post(name: string, url: string, token: string, body: object) {
  for (let attempt = 1; ; attempt++) {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'x-vault-token': token, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(TIMEOUT_MS),
        redirect: 'error',
      });
      const answer = (await response.json().catch(() => ({}))) as Record<string, unknown>;
      return { status: response.status, answer };
    } catch (error) {
      if (attempt === ATTEMPTS) throw away(name, reasonOf(error));
    }
  }
}

async function readToken(file: string | undefined): Promise<string> {
  if (file === undefined)
    throw new StartError('SCRIP_VAULT_TOKEN_FILE is not set: name the file with the token for the KMS');
  return (
    await readOrdinary(file).catch((error: NodeJS.ErrnoException) => {
      throw new StartError(`the token in ${file} (SCRIP_VAULT_TOKEN_FILE) cannot be read (${error.code})`);
    })
  ).trim();
}

function reasonOf(error: unknown): string {
  const { code, cause, name } = error as Error & { code?: string };
  return code ?? (cause as { code?: string } | undefined)?.code ?? name;
}

function away(name: string, reason: string | number): StartError {
  return new StartError(
    `the KMS ${name} cannot be reached (${reason}), and the key ring stays sealed: start again when it is back; processes that run go on`,
  );
}

function refused(name: string, reason: string): StartError {
  return new StartError(
    `the KMS ${name} refuses the key ring (${reason}): check SCRIP_KMS, and what this account may do with the key`,
  );
}
