/** PostgreSQL in a folder. */

export { type Authenticator, authenticate, type Writer } from './authenticator.ts';
export { type BackupOptions, backUp } from './backup.ts';
export { EmbeddedError } from './error.ts';
export { makeFolder, requireOwn } from './folder.ts';
export { lockFile } from './lock.ts';
export { type Backup, listBackups, type Manifest, readKeys } from './manifest.ts';
export type { Restoring } from './recover.ts';
export { type Restored, type RestoreOptions, restore, verify } from './restore.ts';
export { isLogWaiting, SENDER_LOCK } from './sender.ts';
export { findForeignTimeline } from './timelines.ts';
export { type Embedded, find, type Options, start } from './use.ts';
