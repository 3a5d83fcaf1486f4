/** Why Scrip cannot start or go on, in one line for the operator. Every command prints it and ends with status 1. */
export class StartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StartError';
  }
}
