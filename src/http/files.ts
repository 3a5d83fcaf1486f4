import { readdirSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import files from '@fastify/static';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { FOR_PAGES } from './headers.ts';

const FOREVER = 'public, max-age=31536000, immutable';

/** A folder of files that are compressed in advance, and how it is served. */
type Folder = {
  readonly root: URL;
  /** Ends with a slash. */
  readonly prefix: string;
  /**
   * Whether the names of the files contain a digest of their content, so that nobody asks for one twice.
   * These are parts of pages, and none is a page or an image itself.
   */
  readonly isForever?: boolean;
  /** Answers any other path below the prefix. */
  missing(reply: FastifyReply): FastifyReply;
};

/**
 * Serves the files that the folder has at the start, by their names, and `index.html` for the prefix. Other
 * paths never reach the file system, however they are written.
 */
export async function serveFolder(
  scope: FastifyInstance,
  { root, prefix, isForever = false, missing }: Folder,
): Promise<void> {
  const folder = fileURLToPath(root);
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  const names = new Set(found.map(({ parentPath, name }) => relative(folder, `${parentPath}/${name}`)));
  const validators = { etag: !isForever, lastModified: !isForever, acceptRanges: !isForever };
  const served = { root: folder, serve: false, preCompressed: true, cacheControl: false, ...validators };
  await scope.register(files, served);
  scope.get(`${prefix}*`, (request, reply) => {
    const name = (request.params as { '*': string })['*'] || 'index.html';
    if (!names.has(name)) return missing(reply);
    if (isForever) for (const header of FOR_PAGES) reply.removeHeader(header);
    return reply.header('cache-control', isForever ? FOREVER : 'no-cache').sendFile(name);
  });
}
