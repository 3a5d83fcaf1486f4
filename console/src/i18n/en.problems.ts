/** The words for each rule of a field; for some rules, with the facts of the fault. */
export type Faults = Readonly<Record<string, string | ((facts: Readonly<Record<string, string>>) => string)>>;

/** Rules whose message has days of the service, which a page writes as people do. */
export const faults: Faults = {
  'not-in-books': ({ first, last }) =>
    `is outside of the books, which have the days from ${first} to ${last}`,
  'not-closed': ({ day }) => `is after ${day}, which is not closed: this report has closed days only`,
};
