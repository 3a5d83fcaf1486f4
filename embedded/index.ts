/** PostgreSQL in a folder. */

export { EmbeddedError } from './error.ts';
export { makeFolder } from './folder.ts';
export { type Embedded, find, type Options, start } from './use.ts';
