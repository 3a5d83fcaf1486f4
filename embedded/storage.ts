/** Where backups, or the archived log, are kept: a folder, or a bucket of S3-compatible storage. */
export type Storage = {
  /** For messages: a path, or `s3://bucket/prefix`. */
  readonly name: string;
  /** How many files are written at once. */
  readonly parallel: number;
  /** Creates the place, or checks that it can be used. @throws EmbeddedError */
  prepare(): Promise<void>;
  /** The names directly below a folder, `''` for the place itself. */
  list(folder: string): Promise<string[]>;
  /** Opens a file. @throws an error of the code ENOENT if there is none */
  read(file: string): AsyncIterable<Uint8Array>;
  /** Writes a file: whole and durable, or not at all. */
  write(file: string, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** Removes a file, or a folder with all that it holds. What is not there is removed already. */
  remove(path: string): Promise<void>;
  /** Begins a folder that gets its name once it is complete. */
  begin(name: string): Promise<Draft>;
  /** Removes folders that were begun and never completed. */
  removeDrafts(): Promise<void>;
  /** The bytes that are free; undefined if there is no limit. */
  free(): Promise<number | undefined>;
};

/** A folder of a storage that is being written. */
export type Draft = {
  makeFolder(path: string): Promise<void>;
  write(file: string, content: AsyncIterable<Uint8Array>): Promise<void>;
  /**
   * Completes the folder.
   * @param last its manifest: it is there only when everything else is
   */
  commit(folders: readonly string[], last: { readonly file: string; readonly text: string }): Promise<void>;
  abandon(): Promise<void>;
};

/** The file without which a folder is no backup. */
export const MANIFEST = 'manifest.json';

const REMOTE = 's3://';

/** Whether a place is a bucket, not a folder. */
export const isRemote = (place: string): boolean => place.startsWith(REMOTE);

/** Reads a small file whole. @throws as `read` */
export async function readText(storage: Storage, file: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of storage.read(file)) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
