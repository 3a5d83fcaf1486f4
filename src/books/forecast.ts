import type { Service } from '../context.ts';
import { type Float, listFloats } from '../merchants/floats.ts';
import type { Money } from '../money.ts';
import { listLowFloats, listUse } from './forecast.queries.ts';

/** A float with what it was used for, on average, and how long it lasts at that rate. */
export type Forecast = Float & {
  /** The mean use of a day, over the last 28 days or as long as the merchant exists. */
  readonly usePerDay: Money;
  /** Null where nothing was used. */
  readonly daysLeft: number | null;
};

const USE_DAYS = 28;
const DAY_MS = 86_400_000;

/**
 * The floats of a merchant, each with its forecast. What is used: orders and activations, less what was
 * released.
 */
export async function forecastFloats({ db, clock }: Service, merchantId: number): Promise<Forecast[]> {
  const now = clock();
  const since = new Date(now.getTime() - USE_DAYS * DAY_MS);
  type UseRow = { currency: string; used_minor: bigint; days: string };
  const uses = new Map(
    (await db.query<UseRow>(listUse(merchantId, since, now))).map((row) => [row.currency, row]),
  );
  return (await listFloats(db, merchantId)).map((float) => {
    const { minor, decimals } = float.balance;
    const use = uses.get(float.currency);
    const usedMinor = use && use.used_minor > 0n ? use.used_minor : 0n;
    const days = BigInt(Math.ceil(Math.min(USE_DAYS, Math.max(1, Number(use?.days ?? 1)))));
    return {
      ...float,
      usePerDay: { minor: usedMinor / days, decimals },
      daysLeft: usedMinor === 0n ? null : Number((minor * days) / usedMinor),
    };
  });
}

/** A float below the mark at which its merchant is warned. */
export type LowFloat = Forecast & {
  readonly merchantId: number;
  readonly merchant: string;
  readonly low: Money;
};

type LowRow = { merchant_id: number; merchant: string; currency: string; low_minor: bigint };

/** A page of the floats that are low, merchant by merchant. @param after the float behind which it begins */
export async function pageOfLowFloats(
  service: Service,
  after: { readonly merchantId: number; readonly currency: string },
  count: number,
): Promise<LowFloat[]> {
  const rows = await service.db.query<LowRow>(listLowFloats(after.merchantId, after.currency, count));
  const merchants = [...new Set(rows.map(({ merchant_id }) => merchant_id))];
  const forecasts = new Map<number, Forecast[]>();
  for (const id of merchants) forecasts.set(id, await forecastFloats(service, id));
  return rows.flatMap(({ merchant_id: merchantId, merchant, currency, low_minor: minor }) => {
    const float = forecasts.get(merchantId)?.find((each) => each.currency === currency);
    const low = { minor, decimals: float?.balance.decimals ?? 0 };
    return float ? [{ ...float, merchantId, merchant, low }] : [];
  });
}
