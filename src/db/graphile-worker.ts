import { registerHooks } from 'node:module';

/**
 * graphile-worker, without its search for settings. When it is loaded, it looks for a file with settings in
 * the current folder and in all folders above it, and runs that file as JavaScript. An account that can write
 * to such a folder would get the keys of this process. The search (the package cosmiconfig) is therefore
 * replaced by one that finds nothing. Scrip passes all settings itself.
 */
const NO_SEARCH = 'data:text/javascript,export const cosmiconfigSync = () => ({ search: () => null });';

const hooks = registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'cosmiconfig'
      ? { url: NO_SEARCH, format: 'module', shortCircuit: true }
      : next(specifier, context),
});
const { Logger, makeWorkerUtils, parseCronItems, run } = await import('graphile-worker');
hooks.deregister();

/** The schema of the queue, for every start of it. An environment variable would change the default. */
export const QUEUE = { schema: 'graphile_worker' } as const;

export type { Runner, TaskList, WorkerEvents } from 'graphile-worker';
export { Logger, makeWorkerUtils, parseCronItems, run };
