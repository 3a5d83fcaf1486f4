type Lists<Item> = {
  readonly 1: [Item];
  readonly 2: [Item, Item];
  readonly 3: [Item, Item, Item];
  readonly 4: [Item, Item, Item, Item];
  readonly 5: [Item, Item, Item, Item, Item];
};

/** A list whose length a test knows, so that it can name each item. */
export type ListOf<Item, Count extends number> = Count extends keyof Lists<Item>
  ? Lists<Item>[Count]
  : Item[];
