/** PostgreSQL in a folder. */

export { EmbeddedError } from './error.ts';
export { prepareFolder } from './folder.ts';
export { type Embedded, find, type Options, start } from './use.ts';
