/** An item of a list, or another thing of the API, whatever its fields. */
export type Item = Readonly<Record<string, unknown>>;
