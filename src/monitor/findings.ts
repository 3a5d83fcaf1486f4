/**
 * What `scrip doctor` says, in English, with the names of values in braces. The console says it in German
 * (console/src/i18n/de.findings.ts).
 */

/** The sentences that say what a check has found, by their codes. */
export const FOUND = {
  node: 'Node {version}',
  disk: '{free} GB of {total} GB free at {place}',
  'key-file-open': 'the file {file} can be read by other accounts',
  'key-file-own': 'the file {file}: keep a copy of it apart from the backups (nobody can check that for you)',
  'key-file': 'the file {file}',
  'key-setting': 'SCRIP_KEYS',
  'known-as': 'listens at {host}, known as {address}',
  'known-as-nothing': 'listens at {host}, known as nothing else',
  'trusts-no-proxy': 'listens at {host}, known as {address}, and trusts no proxy',
  versions: 'Scrip {scrip}, PostgreSQL {postgres}',
  'clock-behind': "the database's clock is {seconds} s behind the books: every booking is refused",
  'clock-off': "the database's clock is {seconds} s off this machine's",
  durable: 'commits are on the disk before they are acknowledged',
  undurable: '{settings} = off',
  checksums: 'the database notices damaged pages',
  'no-checksums': 'the database has no checksums of its pages',
  data: '{data} GB of data, {buffers} GB of buffers',
  connections: '{connections} of {most} in use, up to {each} for each process',
  'last-backup': 'the last one ended {hours} h ago: {place}',
  'no-backup': 'no backup was made',
  'no-noted-backup': 'no backup of this server was reported',
  'log-waits': 'segments of the log wait to be sent to the archive, and fill the data folder',
  'log-fails': 'the log cannot be archived',
  'archive-inside': 'the log is archived in the data folder, and lost together with it',
  'archive-unused': 'SCRIP_ARCHIVE_DIR is set, but the log is not archived',
  'no-archive': 'the log is not archived: a restore goes back to the last backup',
  archived: 'the log is archived',
  'server-log-fails': 'the server cannot archive its log',
  'server-archives': 'the server archives its log',
  'no-server-archive': 'the server does not archive its log: a restore goes back to the last backup',
  'other-timeline':
    'a restored copy of this database archives to the same place (timeline {timeline}): a restore follows it',
  standbys: '{standbys} connected, up to {seconds} s behind',
  'no-close': 'no day was closed yet',
  'last-close': 'the last closed day ended {hours} h ago',
  partitions: 'created for {months} months ahead',
  'no-batches': 'none in production',
  batches: '{processing} in production',
  'batches-stuck': '{processing} in production, one without progress for {minutes} minutes',
  'batches-failed': '{processing} in production, {failed} canceled by a failure in the last day',
  webhooks: '{due} due, {failing} failing and {disabled} disabled endpoints',
  'check-failed': 'the check failed: {error}',
  'database-away': '{error}',
} as const;

/** The sentences that say what to do, by their codes. */
export const ADVICE = {
  'use-node': 'Scrip is tested on Node {major}, which npm ci installs: start it by its own command',
  'free-now': 'free space now: a full disk stops every booking',
  'free-space': 'free space, or move the data folder',
  'close-key-file': 'chmod 600, then scrip keyring rotate',
  'set-public-url': 'set SCRIP_PUBLIC_URL: links and sign-ins accept only the host name that it has',
  'set-proxies':
    'set SCRIP_TRUSTED_PROXIES to the addresses of the proxy: all callers share the limits of its address',
  'use-postgres': 'use PostgreSQL 15 to 18',
  'set-clock': 'set the clock (docs/how-to/disaster.md, "The clock was wrong")',
  'set-clocks-now': 'set both clocks by NTP: expiries, locks and signatures of webhooks depend on them',
  'set-clocks': 'set both clocks by NTP',
  'set-on': 'set {settings} to on: a crash loses payments that were acknowledged',
  'enable-checksums': 'stop the server and run pg_checksums --enable',
  'set-settings': 'set {advised} (docs/explanation/scale.md)',
  'raise-connections': 'raise max_connections, or run fewer processes: there is room for {room}',
  'back-up': 'scrip backup DIR, every night (docs/how-to/back-up.md)',
  'see-tool': 'look at the tool that makes and reports the backups',
  'note-backup':
    "back it up by its own or your provider's tools, then `scrip backup note` (docs/how-to/back-up.md)",
  'see-serve': 'the log of `scrip serve`, which sends them, says why it cannot',
  'see-postgres': 'look into postgres.log: free space in the archive, or mount it',
  'use-archive': 'start `scrip serve` with it',
  'set-archive': 'set SCRIP_ARCHIVE_DIR to a folder on another disk',
  'see-archiver': 'pg_stat_archiver and the log of the server say why',
  'set-archive-mode':
    'set archive_mode, or the restore to a point in time of your provider (docs/how-to/back-up.md)',
  'stop-copy': 'stop the copy, set SCRIP_ARCHIVE_DIR to an empty place, and make a backup',
  'see-replication': 'pg_stat_replication shows which: a failover would lose what it has not replayed',
  'close-days': 'scrip books close: it says why it cannot',
  'end-transactions':
    'end the oldest transactions of pg_stat_activity: the worker waits for a moment without readers',
  'run-work-for-batches':
    'is `scrip work`, or `scrip serve` without --no-work, running? `scrip batch show` says what failed',
  'order-again':
    '`scrip batch show {transactionId}` says what failed: repair it, and tell the merchant to order again',
  'run-work': 'is `scrip work`, or `scrip serve` without --no-work, running?',
  'tell-merchants': '`scrip webhook list` shows them: tell their merchants',
  'mend-check': 'mend that first, then run scrip doctor again',
  'mend-database': 'mend that first, then run scrip doctor again for the other checks',
} as const;

type Values = Readonly<Record<string, string | number>>;

/** `ok`; `warning`: somebody should look at it; `failure`: it needs action. */
export const STATES = ['ok', 'warning', 'failure'] as const;

/** What a check has found, in English, and the names of both sentences with their values. */
export type Found = {
  readonly state: (typeof STATES)[number];
  readonly found: string;
  /** Null if nothing is to be done. */
  readonly advice: string | null;
  readonly foundCode: keyof typeof FOUND;
  readonly adviceCode: keyof typeof ADVICE | null;
  readonly values: Values;
};

const filled = (sentence: string, values: Values) =>
  sentence.replace(/\{(\w+)\}/g, (_all, name: string) => String(values[name]));

type Adviser = (found: keyof typeof FOUND, advice: keyof typeof ADVICE, values?: Values) => Found;

const adviser =
  (state: Found['state']): Adviser =>
  (foundCode, adviceCode, values = {}) => {
    const [found, advice] = [filled(FOUND[foundCode], values), filled(ADVICE[adviceCode], values)];
    return { state, found, advice, foundCode, adviceCode, values };
  };

export const warning = adviser('warning');
export const failure = adviser('failure');
export const ok = (foundCode: keyof typeof FOUND, values: Values = {}): Found => {
  const found = filled(FOUND[foundCode], values);
  return { state: 'ok', found, advice: null, foundCode, adviceCode: null, values };
};
