import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { StartError } from '../db/errors.ts';
import { headersFor } from './headers.ts';

/** Serves the metrics on a separate port, which clients of the API do not need to reach. */

const TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const HEADERS = Object.fromEntries(headersFor(undefined).browsers);
/** A scrape reads a few small tables. */
const TIMEOUT_MS = 10_000;

export type MetricsServer = { readonly port: number; close(): Promise<void> };

/**
 * Serves the metrics until it is closed.
 * @param read returns the text of all metrics
 * @throws StartError if the port cannot be used
 */
export async function serveMetrics(
  { host, port }: { readonly host: string; readonly port: number },
  read: () => Promise<string>,
): Promise<MetricsServer> {
  const server = createServer({ requestTimeout: TIMEOUT_MS }, (request, response) => {
    if (request.url?.split('?')[0] !== '/metrics' || request.method !== 'GET') {
      response.writeHead(404, { ...HEADERS, 'content-type': 'text/plain' }).end('GET /metrics\n');
      return;
    }
    read().then(
      (text) => response.writeHead(200, { ...HEADERS, 'content-type': TYPE }).end(text),
      () =>
        response
          .writeHead(500, { ...HEADERS, 'content-type': 'text/plain' })
          .end('the metrics cannot be read\n'),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = error.code === 'EADDRINUSE' ? 'is in use' : `cannot be used (${error.code})`;
      reject(
        new StartError(
          `port ${port} at ${host} ${reason}: set SCRIP_METRICS_PORT to another one, or to nothing for no metrics`,
        ),
      );
    });
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
