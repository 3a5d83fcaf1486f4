import { type PendingStore, Scrip } from '../../sdk/src/index.ts';
import { fileStore } from '../../sdk/src/node/file-store.ts';

/** A till that redeems once, and is killed at a point. */

const { folder, point, wanted, card, reference } = JSON.parse(process.argv[2] ?? '');

function reach(name: string): void {
  if (name === point) process.kill(process.pid, 'SIGKILL');
}

const store = fileStore(folder);

const pending: PendingStore = {
  async put(call) {
    reach('before put');
    await store.put(call);
    reach('after put');
  },
  async delete(call) {
    reach('before delete');
    await store.delete(call);
    reach('after delete');
  },
  list: () => store.list(),
};

const scrip = new Scrip({
  ...wanted,
  pending,
  async fetch(...request: Parameters<typeof fetch>) {
    reach('server got');
    const response = await fetch(...request);
    await response.clone().text();
    reach('server done');
    return response;
  },
});
await scrip.redeem({ ...card, amount: 5, reference });
