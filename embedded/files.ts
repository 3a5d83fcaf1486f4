/**
 * The files of a cluster that belong into a backup. A backup holds no other file, and a restore accepts none:
 * settings and programs that somebody has put between them would be obeyed when a copy starts.
 */

const SEGMENT = '[0-9A-F]{24}';
const RELATION = String.raw`[1-9]\d*(_(fsm|vm|init))?(\.[1-9]\d*)?`;

const FILES = [
  'PG_VERSION',
  'backup_label',
  'global/pg_control',
  String.raw`(global|base/[1-9]\d*)/(${RELATION}|PG_VERSION|pg_filenode\.map)`,
  'pg_(xact|commit_ts|multixact/offsets|multixact/members)/[0-9A-F]{4,15}',
  'pg_twophase/[0-9A-F]{8,16}',
  'pg_logical/replorigin_checkpoint',
  String.raw`pg_wal/(${SEGMENT}|[0-9A-F]{8}\.history)`,
];

/** Some of them hold what belongs to a running server only, so their files are left out. */
const FOLDERS = [
  String.raw`base(/[1-9]\d*)?`,
  'global',
  'pg_(commit_ts|dynshmem|logical|multixact|notify|replslot|serial|snapshots|stat|stat_tmp|subtrans)',
  'pg_(tblspc|twophase|wal|xact)',
  'pg_logical/(mappings|snapshots)',
  'pg_multixact/(members|offsets)',
  'pg_wal/(archive_status|summaries)',
];

const anyOf = (patterns: readonly string[]) => new RegExp(`^(${patterns.join('|')})$`);
const FILE = anyOf(FILES);
const FOLDER = anyOf(FOLDERS);

/** @param path relative to the cluster */
export const isClusterFile = (path: string): boolean => FILE.test(path);

/** @param path relative to the cluster */
export const isClusterFolder = (path: string): boolean => FOLDER.test(path);
