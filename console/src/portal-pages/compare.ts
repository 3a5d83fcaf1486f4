export type Booked = { readonly reference: string; readonly amount: number };
export type Compared = {
  readonly agreeing: number;
  readonly missingHere: readonly Booked[];
  readonly missingThere: readonly Booked[];
  readonly differing: readonly (Booked & { readonly inScrip: number })[];
};

/** Compares a till's list with Scrip's, by reference. */
export function compare(till: readonly Booked[], scrip: readonly Booked[]): Compared {
  const here = new Map(scrip.map((each) => [each.reference, each]));
  const there = new Map(till.map((each) => [each.reference, each]));
  const agreeing = till.filter(({ reference, amount }) => here.get(reference)?.amount === amount).length;
  return {
    agreeing,
    missingHere: till.filter(({ reference }) => !here.has(reference)),
    missingThere: scrip.filter(({ reference }) => !there.has(reference)),
    differing: till.flatMap((each) => {
      const inScrip = here.get(each.reference)?.amount;
      return inScrip !== undefined && inScrip !== each.amount ? [{ ...each, inScrip }] : [];
    }),
  };
}
