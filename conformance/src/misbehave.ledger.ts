/** The vouchers and redemptions of the misbehaving server, kept in memory. Its ledger makes no mistakes. */

/** A voucher that one task pays with. */
export type Card = {
  readonly serialNumber: number;
  readonly code: string;
  readonly pin: string;
  readonly value: number;
  balance: number;
};

type Redemption = {
  readonly transactionId: string;
  readonly reference: string;
  readonly card: Card;
  readonly amount: number;
  readonly timestamp: string;
  reversalId: string | null;
};

/** What an operation did: the status code, and the data of the answer. */
export type Result = {
  readonly statusCode: string;
  readonly data: object | null;
  readonly replayed?: boolean;
};

const refusal = (statusCode: string): Result => ({ statusCode, data: null });

export class MemoryLedger {
  readonly #cards = new Map<string, Card>();
  readonly #redemptions = new Map<string, Redemption>();
  readonly #givenUp = new Set<string>();
  #ids = 0;

  add(card: Card): void {
    this.#cards.set(card.code, card);
  }

  /** The redemptions of a voucher that are in force, under whatever references. */
  inForceOn(card: Card): number[] {
    const own = [...this.#redemptions.values()].filter((each) => each.card === card && !each.reversalId);
    return own.map(({ amount }) => amount);
  }

  balance(code: string, pin: string): Result {
    const card = this.#cards.get(code);
    if (!card) return refusal('14');
    if (card.pin !== pin) return refusal('55');
    const { serialNumber, balance, value } = card;
    const data = { serialNumber, voucherCode: masked(code), balance, usableAmount: balance, value };
    return { statusCode: '00', data: { ...data, transactions: [] } };
  }

  redeem(code: string, pin: string, amount: number, reference: string): Result {
    const card = this.#cards.get(code);
    const known = this.#redemptions.get(reference);
    if (this.#givenUp.has(reference) || (known && (known.card !== card || known.amount !== amount)))
      return refusal('94');
    if (!card) return refusal('14');
    if (card.pin !== pin) return refusal('55');
    if (known) return { statusCode: '00', data: shown(known), replayed: true };
    if (card.balance === 0) return refusal('42');
    if (card.balance < amount) return refusal('51');
    card.balance -= amount;
    const redemption: Redemption = {
      transactionId: this.#newId(),
      reference,
      card,
      amount,
      timestamp: new Date().toISOString(),
      reversalId: null,
    };
    this.#redemptions.set(reference, redemption);
    return { statusCode: '00', data: shown(redemption) };
  }

  /** The active transaction under a reference; the caller knows the status code for none. */
  find(reference: string): Result | undefined {
    const known = this.#redemptions.get(reference);
    return known && !known.reversalId ? { statusCode: '00', data: shown(known) } : undefined;
  }

  giveUp(reference: string): Result {
    const known = this.#redemptions.get(reference);
    if (!known) {
      this.#givenUp.add(reference);
      const nothing = { transactionId: null, reversalId: null, amount: null, voucherCode: null };
      return { statusCode: '00', data: { outcome: 'given-up', reference, ...nothing } };
    }
    const outcome = known.reversalId ? 'already-reversed' : 'reversed';
    if (outcome === 'reversed') {
      known.reversalId = this.#newId();
      known.card.balance += known.amount;
    }
    const { transactionId, reversalId, amount, card } = known;
    const data = { outcome, reference, transactionId, reversalId, amount, voucherCode: masked(card.code) };
    return { statusCode: '00', data };
  }

  #newId(): string {
    return `00000000-0000-7000-8000-${String(++this.#ids).padStart(12, '0')}`;
  }
}

const masked = (code: string) => `${code.slice(0, 4)}****${code.slice(8)}`;

function shown({ transactionId, reference, card, amount, timestamp }: Redemption): object {
  return {
    transactionId,
    transactionType: 'REDEMPTION',
    amount,
    timestamp,
    reference,
    voucherCode: masked(card.code),
    serialNumber: String(card.serialNumber),
    refundStatus: null,
    note: null,
  };
}
