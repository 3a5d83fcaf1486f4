import type { Deployment } from '../../src/monitor/doctor.ts';

/** The deployment of a service on a database of its own. */
export const DEPLOYMENT: Deployment = {
  version: '0.0.0',
  dataDir: undefined,
  archiveDir: undefined,
  keyRing: { file: undefined, isOwn: false, isExposed: false },
  connectionsMax: 23,
  network: { host: '127.0.0.1', publicUrl: undefined, trustedProxies: [] },
};
