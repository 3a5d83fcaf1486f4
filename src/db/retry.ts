import { isRetryable } from './errors.ts';

/** How often work is sent again that lost against other work. More in a row would be no accident. */
const MOST_RETRIES = 8;

/** Runs a statement or a transaction, and once more where it lost a race that says nothing about the request. */
export async function retrying<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (attempt > MOST_RETRIES || !isRetryable(error)) throw error;
    }
  }
}
