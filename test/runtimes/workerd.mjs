import { use } from './use.mjs';

/** For workerd, the runtime of Cloudflare: a test of a worker, with the settings as a binding. */
// biome-ignore lint/style/noDefaultExport: a worker needs it.
export default {
  async test(_controller, { SETTINGS }) {
    console.log(JSON.stringify(await use(SETTINGS, String)));
  },
};
