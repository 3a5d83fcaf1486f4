import { availableParallelism, totalmem } from 'node:os';

export const ADDRESS = '127.0.0.1';

const LEAST_BUFFERS_MB = 128;
const MOST_BUFFERS_MB = 2_048;

/**
 * An eighth of the memory, within bounds: the pages that calls come back to stay in it. With ten million journal rows and 256 MB a third
 * of the redemptions a second were lost to reading them from the system's own cache.
 */
function sharedBuffersMb(): number {
  // The bound of a container, which tells a number beyond all memory where it has none.
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return Math.round(Math.min(MOST_BUFFERS_MB, Math.max(LEAST_BUFFERS_MB, memory / 8 / 1024 ** 2)));
}

/**
 * The server's settings. What Scrip acknowledges is on the disk: fsync, synchronous_commit and full_page_writes stay as
 * they are. A statement, its parameters and its errors (which can quote them) never reach the server's own log: the
 * service sees its errors itself. Connections are enough for a process on each core, sixteen each, and for commands.
 */
export const CONFIGURATION = `# Written by Scrip at every start. Settings of your own belong behind the include line in postgresql.conf.
listen_addresses = '${ADDRESS}'
unix_socket_directories = ''
max_connections = ${100 + 16 * availableParallelism()}
password_encryption = scram-sha-256
timezone = UTC
jit = off

# What a million vouchers are looked up by. It is taken from the machine as it is used.
shared_buffers = ${sharedBuffersMb()}MB
# Shared memory for parallel queries is scarce in containers, and no query of Scrip needs them.
max_parallel_workers_per_gather = 0
wal_compression = on
# Fewer checkpoints: less is written twice. A start after a crash reads at most this much.
max_wal_size = 2GB
checkpoint_timeout = 15min
# A new segment of the log was first filled with zeros, and every commit waited some 50 ms for that, once or twice a second under load.
# What is acknowledged is on the disk all the same: a commit still waits until its own part of the log is there.
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
`;
