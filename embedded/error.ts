/** Why the database cannot be used, in one line for the operator. */
export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError';
  /**
   * What else would help: another folder, a PostgreSQL server instead of the embedded one, or a dump that is
   * loaded into a new folder.
   */
  readonly alternative: 'folder' | 'server' | 'dump' | undefined;

  constructor(message: string, alternative?: 'folder' | 'server' | 'dump') {
    super(message);
    this.alternative = alternative;
  }
}
