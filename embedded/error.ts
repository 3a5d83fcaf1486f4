/** Why the database cannot be used, in one line for the operator. */
export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError';
  /** What else would help: another folder, or a PostgreSQL server instead of the embedded one. */
  readonly alternative: 'folder' | 'server' | undefined;

  constructor(message: string, alternative?: 'folder' | 'server') {
    super(message);
    this.alternative = alternative;
  }
}
