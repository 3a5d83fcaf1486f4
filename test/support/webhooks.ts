import { setTimeout as sleep } from 'node:timers/promises';
import { readVouchersOf } from '../../src/batches/export.ts';
import { startDelivery } from '../../src/webhooks/deliver.ts';
import { listDeliveries, type WebhookDelivery } from '../../src/webhooks/deliveries.ts';
import { addEndpoint } from '../../src/webhooks/endpoints.ts';
import type { EventType } from '../../src/webhooks/outbox.ts';
import { createSender } from '../../src/webhooks/send.ts';
import { asOperator } from './harness.ts';
import { Receiver } from './receiver.ts';
import type { Scope } from './scope.ts';
import { Till } from './till.ts';

/** A merchant whose events are delivered to receivers of the test. */
export class Hooked {
  readonly till: Till;
  #delivery: { stop(): Promise<void> } | undefined;

  private constructor(till: Till) {
    this.till = till;
  }

  static async open(
    t: Scope,
    wanted: Parameters<typeof Till.open>[1] = {},
    timeoutMs = 2_000,
  ): Promise<Hooked> {
    let hooked: Hooked | undefined;
    // Hooks of a test run in the order in which they were added: this one must precede that of the service.
    t.after(() => hooked?.stop());
    hooked = new Hooked(await Till.open(t, wanted));
    hooked.start(timeoutMs);
    return hooked;
  }

  get service() {
    return this.till.testService.service;
  }

  start(timeoutMs = 2_000): void {
    const sender = createSender({ allowPrivate: true, clock: this.service.clock, timeoutMs });
    this.#delivery = startDelivery(this.service, sender, readVouchersOf);
  }

  async stop(): Promise<void> {
    await this.#delivery?.stop();
    this.#delivery = undefined;
  }

  /** Adds an endpoint of this merchant at a receiver. */
  async add(t: Scope, events: readonly EventType[] | null = null) {
    const receiver = await Receiver.start();
    t.after(() => receiver.stop());
    const wanted = { merchantId: this.till.merchant.id, url: receiver.url, events, full: false };
    return { receiver, ...(await addEndpoint(asOperator(this.service), wanted, true)) };
  }

  /** Waits until the deliveries of an endpoint fulfill a condition. */
  async until(id: number, ready: (deliveries: WebhookDelivery[]) => boolean): Promise<WebhookDelivery[]> {
    for (;;) {
      const deliveries = await listDeliveries(this.service.db, id, null, 1_000);
      if (ready(deliveries)) return deliveries;
      await sleep(20);
    }
  }
}
