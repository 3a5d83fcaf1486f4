import { expectCode, expectThat } from './expect.ts';
import { type Access, type Loose, Probe, type Seen, type Variant, type Wanted } from './probe.ts';

/** The test merchant: its requests in each variant, and vouchers for them. */

export type Voucher = { readonly serialNumber: number; readonly code: string; readonly pin: string };

type More = Pick<Wanted, 'isReplay'>;

/** A well-formed code that no service issues: the first digit of a code is never 0. */
export const UNKNOWN: Voucher = { serialNumber: 999_999_999_999_999, code: '099999999999', pin: '1234' };

/** State that both variants share in a run. */
export type Shared = {
  /** Makes the references of a run unique. */
  readonly run: string;
  readonly product: string;
  /** Codes and PINs that were issued: no report may hold one. */
  readonly confidential: Set<string>;
  readonly codes: Set<string>;
  count: number;
};

export class TestMerchant {
  readonly variant: Variant;
  readonly probe: Probe;
  readonly shared: Shared;
  /** The same merchant under the other prefix, where both are checked. */
  other: TestMerchant | undefined;

  constructor(variant: Variant, access: Access, shared: Shared) {
    this.variant = variant;
    this.probe = new Probe(variant, access);
    this.shared = shared;
  }

  /** A reference that was never used. */
  fresh(): string {
    return `conformance-${this.shared.run}-${++this.shared.count}`;
  }

  get(path: string): Promise<Seen> {
    return this.probe.send({ path });
  }

  post(path: string, body: unknown, more: More = {}): Promise<Seen> {
    return this.probe.send({ method: 'POST', path, body, ...more });
  }

  generateBody(quantity: unknown, value: unknown, reference: unknown): Record<string, unknown> {
    return this.variant === 'a'
      ? { reference, productCode: this.shared.product, quantity, amount: value }
      : { reference, quantity, value };
  }

  async generate(
    quantity: unknown,
    value: unknown,
    reference: unknown = this.fresh(),
    more: More = {},
  ): Promise<Seen> {
    return this.keep(await this.post('/vouchers', this.generateBody(quantity, value, reference), more));
  }

  async download(reference: string): Promise<Seen> {
    return this.keep(await this.get(`/vouchers/${encodeURIComponent(reference)}`));
  }

  /**
   * Remembers the codes of a response, to keep them out of the report and to find them in other responses.
   */
  keep(seen: Seen): Seen {
    const vouchers: Loose = Array.isArray(seen.data?.vouchers) ? seen.data.vouchers : [];
    for (const { code, pin } of vouchers) {
      if (typeof code !== 'string' || typeof pin !== 'string') continue;
      this.shared.codes.add(code);
      for (const each of [code, pin, code + pin]) this.shared.confidential.add(each);
    }
    return seen;
  }

  /** Active vouchers of a new batch, of at most 10. */
  async vouchers(quantity: number, value = 5): Promise<Voucher[]> {
    const seen = await this.generate(quantity, value);
    expectCode(seen, '00', 'the generation of a voucher to try the rule on');
    const vouchers: Loose = seen.data?.vouchers;
    const isWhole = Array.isArray(vouchers) && vouchers.length === quantity;
    expectThat(isWhole, `${quantity} vouchers in the answer`, 'another number of them');
    return vouchers;
  }

  async voucher(value?: number): Promise<Voucher> {
    return (await this.vouchers(1, value))[0] as Voucher;
  }

  /** The fields that name a voucher: code and PIN in A; in B both, or one text. */
  named({ code, pin }: Voucher, spelling: 'apart' | 'in one' = 'apart'): Record<string, unknown> {
    if (this.variant === 'a') return { code, pin };
    return spelling === 'apart' ? { voucherCode: code, pin } : { voucherCode: code + pin };
  }

  redeem(
    voucher: Voucher,
    amount: unknown,
    reference: unknown = this.fresh(),
    more: More = {},
  ): Promise<Seen> {
    return this.post('/redeem', { ...this.named(voucher), amount, reference }, more);
  }

  activate(voucher: Voucher, reference: unknown = this.fresh(), more: More = {}): Promise<Seen> {
    const named = this.variant === 'a' ? this.named(voucher) : { serialNumber: voucher.serialNumber };
    return this.post('/activate', { ...named, reference }, more);
  }

  balance(voucher: Voucher): Promise<Seen> {
    return this.post('/balance', this.named(voucher));
  }

  async balanceOf(voucher: Voucher): Promise<number> {
    const seen = await this.balance(voucher);
    expectCode(seen, '00', 'the balance of a voucher');
    return seen.data?.balance;
  }

  update(body: Record<string, unknown>): Promise<Seen> {
    return this.post('/redemptions/update', body);
  }

  details(reference: string): Promise<Seen> {
    return this.get(`/redemptions/update/${encodeURIComponent(reference)}`);
  }

  lookup(reference: string): Promise<Seen> {
    return this.get(`/transactions/${encodeURIComponent(reference)}`);
  }

  /** Vouchers without a value, which only variant B can order. */
  async inactive(quantity = 1): Promise<Voucher[]> {
    const inB = this.variant === 'b' ? this : (this.other ?? this);
    const { data, statusCode } =
      inB.variant === 'b' ? await inB.generate(quantity, null) : { data: null, statusCode: '' };
    return statusCode === '00' && Array.isArray(data?.vouchers) ? data.vouchers : [];
  }

  /** A voucher with a wrong PIN. It is next to the right one, so no report may hold it either. */
  withWrongPin(voucher: Voucher): Voucher {
    const pin = String((Number(voucher.pin) + 1) % 10_000).padStart(4, '0');
    for (const each of [pin, voucher.code + pin]) this.shared.confidential.add(each);
    return { ...voucher, pin };
  }
}
