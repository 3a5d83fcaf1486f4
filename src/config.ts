import { isKeyId } from './credentials.ts';
import { StartError } from './db/errors.ts';
import { isAddress } from './db/health.ts';
import { refuseKeyRing } from './keyring/file.ts';
import { isKms } from './keyring/kms.ts';
import { decimalsOf } from './money.ts';
import { readNetwork } from './network.ts';

/**
 * A setting, with its default and its bounds. This is the only file that reads the environment. The
 * help and the page of settings are made from this list.
 */
type Setting = {
  readonly name: string;
  readonly fallback: string | undefined;
  readonly description: string;
  /** The error of a value, or undefined. */
  readonly refuse: (value: string) => string | undefined;
};

const TRACES_ADDRESS = 'an address such as http://127.0.0.1:4318';
/** What an address of a service looks like. */
export const ORIGIN = 'an address such as https://vouchers.example.com, without a path';

const LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];
/** Half of the time that supervisors usually give a process to end. */
const DRAIN_MAX_SECONDS = 60;

const wholeNumberTo = (max: number) => (value: string) =>
  /^\d{1,5}$/.test(value) && Number(value) <= max ? undefined : `must be a whole number from 0 to ${max}`;
const pathOf = (what: string) => (value: string) =>
  value.includes('\0') ? `must be the path of a ${what}` : undefined;
const shortText = (value: string) => (value.length <= 500 ? undefined : 'must have at most 500 characters');

export const SETTINGS = {
  host: {
    name: 'SCRIP_HOST',
    fallback: '127.0.0.1',
    description:
      'The address or host name to listen at. Behind a proxy on another machine, 0.0.0.0 listens everywhere.',
    refuse: (value) => (/^[A-Za-z0-9.:_-]+$/.test(value) ? undefined : 'must be an address or a host name'),
  },
  port: {
    name: 'SCRIP_PORT',
    fallback: '8080',
    description: 'The port to listen at, from 1 to 65535, or 0 for a free one.',
    refuse: wholeNumberTo(65_535),
  },
  drainSeconds: {
    name: 'SCRIP_DRAIN_SECONDS',
    fallback: '5',
    description:
      'How long a process still accepts connections after SIGTERM, from 0 to 60 seconds. /readyz answers 503 ' +
      'meanwhile, so that the load balancer sends the calls elsewhere. It must be longer than the interval of ' +
      "the load balancer's health checks.",
    refuse: wholeNumberTo(DRAIN_MAX_SECONDS),
  },
  databaseUrl: {
    name: 'SCRIP_DATABASE_URL',
    fallback: undefined,
    description:
      'A PostgreSQL server (15 to 18): postgres://user:password@host:port/database, with host:port,host:port ' +
      'for a primary and its standbys. Without it Scrip runs its own PostgreSQL in the data folder.',
    refuse: (value) =>
      isAddress(value)
        ? undefined
        : 'must be an address that begins with postgres://, with target_session_attrs=read-write or none',
  },
  readDatabaseUrl: {
    name: 'SCRIP_READ_DATABASE_URL',
    fallback: undefined,
    description:
      'A standby of that server, which answers lists and exports. It is never used for decisions, and ' +
      'must be unset on Citus.',
    refuse: (value) => (isAddress(value) ? undefined : 'must be an address that begins with postgres://'),
  },
  dataDir: {
    name: 'SCRIP_DATA_DIR',
    fallback: './.scrip',
    description: 'The data folder, with the embedded database and the key file that the first start creates.',
    refuse: pathOf('folder'),
  },
  metricsPort: {
    name: 'SCRIP_METRICS_PORT',
    fallback: undefined,
    description:
      'The port at which `scrip serve` and `scrip work` answer GET /metrics for Prometheus, from 1 to 65535, ' +
      'or 0 for a free one. Without it there are no metrics. The port needs no key: close it to the networks ' +
      'of clients.',
    refuse: wholeNumberTo(65_535),
  },
  tracesEndpoint: {
    name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    fallback: undefined,
    description:
      `Where traces are sent, by OTLP over HTTP: ${TRACES_ADDRESS}. Without it ` +
      'there are no traces. The other OpenTelemetry variables (OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER …) ' +
      'count too.',
    refuse: (value) =>
      URL.canParse(value) && /^https?:/.test(value) ? undefined : `must be ${TRACES_ADDRESS}`,
  },
  archiveDir: {
    name: 'SCRIP_ARCHIVE_DIR',
    fallback: undefined,
    description:
      'A folder, preferably on another disk, or s3://bucket/prefix, in which `scrip serve` and `scrip work` ' +
      'archive the log of the embedded database: `scrip restore` replays it on top of a backup. Without it ' +
      'the log is not archived.',
    refuse: (value) =>
      /[\0\n\r"]/.test(value) ? 'must be the path of a folder, or s3://bucket/prefix' : undefined,
  },
  keys: {
    name: 'SCRIP_KEYS',
    fallback: undefined,
    description:
      'The key ring, under which codes and PINs are sealed: id:key entries separated by commas, newest first. ' +
      'Without it, the file "keys" in the data folder, which must be backed up separately from the database.',
    refuse: refuseKeyRing,
  },
  keysFile: {
    name: 'SCRIP_KEYS_FILE',
    fallback: undefined,
    description:
      'A file that contains the key ring instead, such as a secret of Docker, Kubernetes or systemd. It is ' +
      'never created or written.',
    refuse: pathOf('file'),
  },
  kms: {
    name: 'SCRIP_KMS',
    fallback: undefined,
    description:
      'The key of a key management service that seals the key file: aws:KEY-ID (also an alias or ARN), or ' +
      'vault:https://vault.example.com:8200/transit/keys/scrip. `scrip keyring seal` seals a file that exists.',
    refuse: (value) =>
      isKms(value)
        ? undefined
        : 'must be aws:KEY-ID, aws:alias/NAME, aws:ARN, or vault:https://HOST/MOUNT/keys/NAME',
  },
  vaultTokenFile: {
    name: 'SCRIP_VAULT_TOKEN_FILE',
    fallback: undefined,
    description: 'The file with the token for that Vault, as its agent writes it. It is read at each use.',
    refuse: pathOf('file'),
  },
  trustedProxies: {
    name: 'SCRIP_TRUSTED_PROXIES',
    fallback: undefined,
    description:
      'The networks of your proxies, such as 10.0.0.0/8, separated by commas. X-Forwarded-For is trusted ' +
      'only from them. Keys that are bound to networks need it behind a proxy.',
    refuse: (value) =>
      splitList(value).every(readNetwork)
        ? undefined
        : 'must be networks such as 10.0.0.0/8, separated by commas',
  },
  publicUrl: {
    name: 'SCRIP_PUBLIC_URL',
    fallback: undefined,
    description:
      `The address at which browsers reach the console and the portal: ${ORIGIN}. ` +
      'Links of invitations begin with it. ' +
      'Without it, the address that the service listens at.',
    refuse: (value) => (isOrigin(value) ? undefined : `must be ${ORIGIN}`),
  },
  oidcIssuer: {
    name: 'SCRIP_OIDC_ISSUER',
    fallback: undefined,
    description:
      'The identity provider by which the people of the operator sign in, such as https://login.example.com. ' +
      'Needs SCRIP_OIDC_CLIENT_ID, SCRIP_OIDC_CLIENT_SECRET and SCRIP_PUBLIC_URL.',
    refuse: (value) =>
      /^https:\/\/|^http:\/\/(localhost|127\.0\.0\.1|\[::1\])[:/]/.test(value) && URL.canParse(value)
        ? undefined
        : 'must be an address that begins with https://',
  },
  oidcClientId: {
    name: 'SCRIP_OIDC_CLIENT_ID',
    fallback: undefined,
    description: 'The id under which this service is registered at the identity provider.',
    refuse: shortText,
  },
  oidcClientSecret: {
    name: 'SCRIP_OIDC_CLIENT_SECRET',
    fallback: undefined,
    description: 'The secret of that registration.',
    refuse: shortText,
  },
  logLevel: {
    name: 'SCRIP_LOG_LEVEL',
    fallback: 'info',
    description: `The lowest level that is logged: ${LEVELS.join(', ')}.`,
    refuse: (value) => (LEVELS.includes(value) ? undefined : `must be one of ${LEVELS.join(', ')}`),
  },
  currency: {
    name: 'SCRIP_CURRENCY',
    fallback: 'USD',
    description:
      'The currency of the product DEFAULT, a code of ISO 4217. It is used when the first start creates ' +
      'the product.',
    refuse: (value) =>
      decimalsOf(value) === undefined ? 'must be a currency code of ISO 4217, such as USD' : undefined,
  },
  keyId: {
    name: 'SCRIP_KEY_ID',
    fallback: undefined,
    description:
      'The API key with which `scrip probe` and `scrip bench` call: that of a merchant which does nothing else.',
    refuse: (value) => (isKeyId(value) ? undefined : 'must be the id of an API key, such as key_…'),
  },
  secret: {
    name: 'SCRIP_SECRET',
    fallback: undefined,
    description: 'The secret of that API key.',
    refuse: shortText,
  },
  webhookAllowPrivate: {
    name: 'SCRIP_WEBHOOK_ALLOW_PRIVATE',
    fallback: 'false',
    description:
      'Whether webhooks may be sent to http and private addresses: true or false. For development only.',
    refuse: (value) => (value === 'true' || value === 'false' ? undefined : 'must be true or false'),
  },
} as const satisfies Record<string, Setting>;

const toPort = (text: string | undefined) => (text === undefined ? undefined : Number(text));

/** Whether a text is the address of a service: without a path. */
export function isOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return (
    url !== undefined &&
    /^https?:$/.test(url.protocol) &&
    url.origin === text.replace(/\/$/, '').toLowerCase()
  );
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((each) => each.trim())
    .filter(Boolean);
}

export type Config = Readonly<ReturnType<typeof readConfig>>;

/**
 * Reads all settings. An empty setting counts as not set.
 * @throws StartError that names the setting out of bounds, never its value, which could be a password
 */
export function readConfig(env: NodeJS.ProcessEnv = process.env) {
  const read = (setting: Setting): string | undefined => {
    const value = env[setting.name] || setting.fallback;
    const problem = value === undefined ? undefined : setting.refuse(value);
    if (problem) throw new StartError(`${setting.name} ${problem}`);
    return value;
  };
  const publicUrl = read(SETTINGS.publicUrl)?.replace(/\/$/, '');
  return {
    host: read(SETTINGS.host) as string,
    port: Number(read(SETTINGS.port)),
    drainMs: Number(read(SETTINGS.drainSeconds)) * 1_000,
    databaseUrl: read(SETTINGS.databaseUrl),
    readDatabaseUrl: read(SETTINGS.readDatabaseUrl),
    dataDir: read(SETTINGS.dataDir) as string,
    /** Whether the folder was named, rather than the default one. */
    isDataDirGiven: Boolean(env[SETTINGS.dataDir.name]),
    archiveDir: read(SETTINGS.archiveDir),
    metricsPort: toPort(read(SETTINGS.metricsPort)),
    tracesEndpoint: read(SETTINGS.tracesEndpoint),
    keys: read(SETTINGS.keys),
    keysFile: read(SETTINGS.keysFile),
    kms: read(SETTINGS.kms),
    vaultTokenFile: read(SETTINGS.vaultTokenFile),
    trustedProxies: splitList(read(SETTINGS.trustedProxies) ?? ''),
    publicUrl,
    oidc: readOidc(read, publicUrl),
    logLevel: read(SETTINGS.logLevel) as string,
    currency: read(SETTINGS.currency) as string,
    keyId: read(SETTINGS.keyId),
    secret: read(SETTINGS.secret),
    webhookAllowPrivate: read(SETTINGS.webhookAllowPrivate) === 'true',
  };
}

/** The descriptor of the first socket that is passed. */
const PASSED_SOCKET = 3;

/**
 * Returns the descriptor of the listening socket that systemd has passed to a process (socket activation, see
 * sd_listen_fds(3)); undefined if there is none.
 * @param pid the process
 * @throws StartError for several sockets
 */
export function passedSocket(pid: number, env: NodeJS.ProcessEnv = process.env): number | undefined {
  if (env['LISTEN_PID'] !== String(pid)) return undefined;
  if (env['LISTEN_FDS'] !== '1')
    throw new StartError(`${env['LISTEN_FDS']} sockets were passed: name one address as ListenStream=`);
  return PASSED_SOCKET;
}

/** Returns the variables that are nearly named like a setting, each with that setting: they are ignored. */
export function misspelledSettings(env: NodeJS.ProcessEnv = process.env): [given: string, meant: string][] {
  const names: string[] = Object.values(SETTINGS).map(({ name }) => name);
  return Object.keys(env)
    .filter((given) => given.startsWith('SCRIP_') && !names.includes(given))
    .flatMap((given) => {
      const meant = names.find((name) => isOneSlip(given, name) || isOneSlip(name, given));
      return meant === undefined ? [] : [[given, meant] as [string, string]];
    });
}

/** Whether a word becomes another one if a letter is left out or replaced, or two neighbors are swapped. */
function isOneSlip(from: string, to: string): boolean {
  const at = [...from].findIndex((letter, index) => letter !== to[index]);
  if (at === -1) return false;
  const rest = from.slice(at + 1);
  const swapped = `${rest[0]}${from[at]}${rest.slice(1)}`;
  return [rest, `${to[at]}${rest}`, swapped].includes(to.slice(at));
}

/** Reads the settings of the identity provider. @throws StartError if one of them is missing */
function readOidc(read: (setting: Setting) => string | undefined, publicUrl: string | undefined) {
  const { oidcIssuer, oidcClientId, oidcClientSecret } = SETTINGS;
  const [issuer, clientId, clientSecret] = [oidcIssuer, oidcClientId, oidcClientSecret].map(read);
  if (issuer === undefined && clientId === undefined && clientSecret === undefined) return undefined;
  if (issuer === undefined || clientId === undefined || clientSecret === undefined || publicUrl === undefined)
    throw new StartError(
      `${oidcIssuer.name}, ${oidcClientId.name}, ${oidcClientSecret.name} and ${SETTINGS.publicUrl.name} ` +
        'belong together: set all of them, or none of the first three',
    );
  return { issuer, clientId, clientSecret };
}
