/** The options and words that a scenario was started with. */
export type Given = {
  readonly words: readonly string[];
  readonly values: Readonly<Record<string, string | number | boolean | undefined>>;
};

export const numberOf = ({ values }: Given, name: string) => Number(values[name]);

/** The folder in which the databases of a scenario stay, if they do. */
export const keptIn = ({ values: { keep } }: Given) => (typeof keep === 'string' ? keep : undefined);

/** Whether a part of a scenario is wanted: all are, unless some are named. */
export const wants = ({ words }: Given, part: string) => words.length === 0 || words.includes(part);
