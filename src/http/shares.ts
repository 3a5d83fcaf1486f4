/**
 * Places that clients share. Below the limit, every client is admitted. At the limit, a client is admitted
 * only if it has less than an equal share of the places, so a client that floods the service does not exclude
 * others. The n-th client is admitted up to 1/n of the limit, so the total stays below the limit times
 * (1 + ln n).
 */
export class Shares<Client> {
  readonly #max: number;
  #total = 0;
  /** Places in use, by client. A client without any has no entry. */
  readonly #inside = new Map<Client, number>();

  constructor(max: number) {
    this.#max = max;
  }

  get isFull(): boolean {
    return this.#total >= this.#max;
  }

  /** Whether a client may take another place. */
  hasPlace(client: Client): boolean {
    if (!this.isFull) return true;
    const inside = this.#inside.get(client) ?? 0;
    const clients = inside > 0 ? this.#inside.size : this.#inside.size + 1;
    return inside < this.#max / clients;
  }

  /** Takes a place, whether there is one or not. */
  take(client: Client): void {
    this.#total++;
    this.#inside.set(client, (this.#inside.get(client) ?? 0) + 1);
  }

  /** Gives a place back. */
  leave(client: Client): void {
    this.#total--;
    const left = (this.#inside.get(client) ?? 0) - 1;
    if (left > 0) this.#inside.set(client, left);
    else this.#inside.delete(client);
  }
}
