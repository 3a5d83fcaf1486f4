import { availableParallelism, totalmem } from 'node:os';

export const ADDRESS = '127.0.0.1';

const BUFFERS_MIN_MB = 128;
const BUFFERS_MAX_MB = 2_048;

/**
 * An eighth of the memory, within bounds. With ten million journal rows, 256 MB cost a third of the
 * redemptions per second: the pages that every call needs had to be read from the system's cache.
 */
function sharedBuffersMb(): number {
  // The limit of a container; without one it is a number beyond all memory, or 0.
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return Math.round(Math.min(BUFFERS_MAX_MB, Math.max(BUFFERS_MIN_MB, memory / 8 / 1024 ** 2)));
}

/** The files in which an operator can put settings. */
export const OWN_FILES = ['postgresql.conf', 'postgresql.auto.conf'];

/**
 * The files with settings with which a database begins, new or restored. Those of a backup are never used:
 * PostgreSQL runs commands and loads libraries that they name.
 */
export const FIRST_FILES: Readonly<Record<string, string>> = {
  'postgresql.conf': `include = 'scrip.conf'
# Put your own settings below this line.
`,
  'postgresql.auto.conf': '',
  'pg_hba.conf': `host all all ${ADDRESS}/32 scram-sha-256
`,
  'pg_ident.conf': '',
};

/**
 * The server's settings. An acknowledged commit is on the disk: fsync, synchronous_commit and
 * full_page_writes keep their defaults. Statements, parameters and errors (which can quote them) never
 * reach the server's log; clients see their errors themselves. There are connections for a process on
 * each core, sixteen each, and for commands.
 *
 * The log is always in a form that can be archived: turning the archive on takes no restart.
 * @param archiveCommand the command that archives a segment; empty: segments are kept
 */
export const configuration = (
  archiveCommand: string,
) => `# Written at every start. Put your own settings below the include line of postgresql.conf.
listen_addresses = '${ADDRESS}'
unix_socket_directories = ''
max_connections = ${100 + 16 * availableParallelism()}
password_encryption = scram-sha-256
timezone = UTC
jit = off
# Scrip has none. A restored database must not run any.
event_triggers = off

# Memory is taken from the machine only as it is used.
shared_buffers = ${sharedBuffersMb()}MB
# Shared memory for parallel queries is scarce in containers.
max_parallel_workers_per_gather = 0
# Its binaries have pglz only, which takes some 140 µs for each page that is logged whole after a checkpoint:
# redemptions of random vouchers then took four times the processor time, for a third less log.
wal_compression = off
# Fewer checkpoints write less twice. Recovery after a crash reads at most this much.
max_wal_size = 2GB
checkpoint_timeout = 30min
# Filling new log segments with zeros delayed every commit by some 50 ms, once or twice a second under load.
# Durability does not depend on it: a commit still waits until its part of the log is on the disk.
wal_init_zero = off

logging_collector = off
log_timezone = UTC
log_line_prefix = '%m [%p] '
log_min_messages = log
log_min_error_statement = panic
log_error_verbosity = terse
log_statement = none
log_min_duration_statement = -1
log_parameter_max_length = 0
log_parameter_max_length_on_error = 0
log_checkpoints = off
log_autovacuum_min_duration = -1

archive_mode = on
archive_command = '${archiveCommand}'
archive_timeout = 5min
`;
