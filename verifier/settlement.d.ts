/** What was found, each a sentence; and what was proved, if nothing is wrong. */
export type Proved = {
  readonly findings: readonly string[];
  readonly notes: readonly string[];
  readonly sentence?: string;
};

/**
 * Proves that the redemptions in the file of a till are in closed days, each in one settlement, and that the
 * settlements have no others.
 * @param till the text of the file, as CSV
 * @param settlements the texts of the proofs
 */
export declare function prove(
  till: string,
  settlements: readonly string[],
  options?: {
    /** The public key of the installation, `name+id+key`; without it, no signature is verified. */
    readonly key?: string | undefined;
    /** The published checkpoint and closings, with which the days are compared. */
    readonly published?: { readonly checkpoint: string; readonly closings: readonly string[] } | undefined;
  },
): Promise<Proved>;
