/** Who takes part in the demo's history, and on which terms. */

type DemoProduct = {
  readonly code: string;
  readonly name: string;
  readonly currency: string;
  readonly decimals: number;
  readonly validityDays: number;
  readonly expiryPolicy: 'operator' | 'issuer' | 'unclaimed';
};

export const PRODUCTS: readonly DemoProduct[] = [
  {
    code: 'GIFT-USD',
    name: 'Gift card',
    currency: 'USD',
    decimals: 2,
    validityDays: 365,
    expiryPolicy: 'operator',
  },
  {
    code: 'MEAL-USD',
    name: 'Meal voucher',
    currency: 'USD',
    decimals: 2,
    validityDays: 30,
    expiryPolicy: 'operator',
  },
  {
    code: 'GIFT-EUR',
    name: 'Geschenkkarte',
    currency: 'EUR',
    decimals: 2,
    validityDays: 45,
    expiryPolicy: 'issuer',
  },
  {
    code: 'TEA-JPY',
    name: 'Tea card',
    currency: 'JPY',
    decimals: 0,
    validityDays: 40,
    expiryPolicy: 'unclaimed',
  },
];

/** Floats and values in major units. The float of the last one is nearly used up at the end. */
export const MERCHANTS = [
  { name: 'Corner Kiosk', product: 'GIFT-USD', float: 6_000, values: [25, 50] },
  { name: 'Riverside Diner', product: 'MEAL-USD', float: 3_000, values: [15, 20] },
  { name: 'Alpine Outdoor', product: 'GIFT-EUR', float: 8_000, values: [50, 75] },
  { name: 'Buchladen am Markt', product: 'GIFT-EUR', float: 5_000, values: [20, 30] },
  { name: 'Kyoto Tea House', product: 'TEA-JPY', float: 230_000, values: [2_000, 3_000] },
] as const;

/** What prices at a till are multiples of. */
export const CASH_DRAWER: Readonly<Record<string, number>> = { USD: 0.5, EUR: 0.5, JPY: 100 };
