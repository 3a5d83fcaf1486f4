import type { Service } from '../context.ts';
import type { Float } from '../merchants/floats.ts';
import type { Money } from '../money.ts';
import { listLowFloats, listUse } from './forecast.queries.ts';

/** A float with what it was used for, on average, and how long it lasts at that rate. */
export type Forecast = Float & {
  /**
   * The mean use of a day, over the last 28 days or as long as the merchant exists; without the last hour
   * or two.
   */
  readonly usePerDay: Money;
  /** Null where nothing was used. */
  readonly daysLeft: number | null;
};

const USE_DAYS = 28;
const DAY_MS = 86_400_000;

type UseRow = {
  merchant_id: number;
  currency: string;
  decimals: number;
  balance_minor: bigint;
  used_minor: bigint;
  days: string;
};

/**
 * The floats of a merchant, each with its forecast. What is used: orders and activations, less what was
 * released.
 */
export async function forecastFloats(service: Service, merchantId: number): Promise<Forecast[]> {
  return (await forecastsOf(service, [merchantId])).map(({ forecast }) => forecast);
}

async function forecastsOf({ db, clock }: Service, merchantIds: readonly number[]) {
  const now = clock();
  const rows = await db.query<UseRow>(listUse(merchantIds, new Date(now.getTime() - USE_DAYS * DAY_MS), now));
  return rows.map((row) => ({ merchantId: row.merchant_id, forecast: toForecast(row) }));
}

function toForecast({ currency, decimals, balance_minor: minor, used_minor, days: since }: UseRow): Forecast {
  const usedMinor = used_minor > 0n ? used_minor : 0n;
  const days = BigInt(Math.ceil(Math.min(USE_DAYS, Math.max(1, Number(since)))));
  return {
    currency,
    balance: { minor, decimals },
    usePerDay: { minor: usedMinor / days, decimals },
    daysLeft: usedMinor === 0n ? null : Number((minor * days) / usedMinor),
  };
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
  const forecasts = await forecastsOf(service, [...new Set(rows.map(({ merchant_id }) => merchant_id))]);
  const byFloat = new Map(
    forecasts.map(({ merchantId, forecast }) => [`${merchantId} ${forecast.currency}`, forecast]),
  );
  return rows.flatMap(({ merchant_id: merchantId, merchant, currency, low_minor: minor }) => {
    const float = byFloat.get(`${merchantId} ${currency}`);
    const low = { minor, decimals: float?.balance.decimals ?? 0 };
    return float ? [{ ...float, merchantId, merchant, low }] : [];
  });
}
