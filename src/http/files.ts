import { readdirSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import files from '@fastify/static';
import type { FastifyInstance, FastifyReply } from 'fastify';

/** A folder of files that are compressed in advance, and how it is served. */
export type Folder = {
  readonly root: URL;
  /** Ends with a slash. */
  readonly prefix: string;
  readonly cacheControl: string;
  /** Answers any other path below the prefix. */
  missing(reply: FastifyReply): FastifyReply;
};

/**
 * Serves the files that the folder has at the start, by their names, and `index.html` for the prefix. Other
 * paths never reach the file system, however they are written.
 */
export async function serveFolder(
  scope: FastifyInstance,
  { root, prefix, cacheControl, missing }: Folder,
): Promise<void> {
  const folder = fileURLToPath(root);
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  const names = new Set(found.map(({ parentPath, name }) => relative(folder, `${parentPath}/${name}`)));
  await scope.register(files, { root: folder, serve: false, preCompressed: true, cacheControl: false });
  scope.get(`${prefix}*`, (request, reply) => {
    const name = (request.params as { '*': string })['*'] || 'index.html';
    return names.has(name) ? reply.header('cache-control', cacheControl).sendFile(name) : missing(reply);
  });
}
