/** A sentence about what is wrong with a proof, and where. */
export declare class Refused extends Error {}

/** Verifies a proof. */
export declare class Verifier {
  /** The texts of the closings. */
  readonly closings: string[];
  /** Takes the next part of the file. @throws Refused */
  piece(text: string): void;
  /** Takes the next line, without its line feed. @throws Refused */
  line(text: string): void;
  /** Returns the sentence that says what was proved. @throws Refused for a file that was cut off */
  end(): string;
}

/**
 * Compares the closings of a proof with the published ones, and these with the checkpoint.
 * @param key the public key of the installation, `name+id+key`; without it, no signature is verified
 * @throws Refused
 */
export declare function compare(
  proved: readonly string[],
  published: { readonly checkpoint: string; readonly closings: readonly string[] },
  key?: string,
): Promise<void>;

/** Returns the hash of a text as the leaf of a tree. */
export declare function leafOf(text: string): Uint8Array;

/** Returns the SHA-256 of bytes. */
export declare function sha256(bytes: Uint8Array): Uint8Array;
