import { use } from './use.mjs';

/** On workerd, which Cloudflare's edge runs: as a worker's test, with the settings as a binding. */
// biome-ignore lint/style/noDefaultExport: what a worker must have.
export default {
  async test(_controller, { SETTINGS }) {
    console.log(JSON.stringify(await use(SETTINGS, String)));
  },
};
