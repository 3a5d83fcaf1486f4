/** A file of the project: its path from the root, with forward slashes, and its text. */
export type SourceFile = { readonly path: string; readonly text: string };
export type Rule = (files: readonly SourceFile[]) => string[];

function lineOf(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}

/** Makes a rule that finds a pattern (with the flag g) in the files that a condition picks. */
export function forbid(pattern: RegExp, message: string, applies: (file: SourceFile) => boolean): Rule {
  return (files) =>
    files
      .filter(applies)
      .flatMap(({ path, text }) =>
        [...text.matchAll(pattern)].map((hit) => `${path}:${lineOf(text, hit.index)} ${message}`),
      );
}
