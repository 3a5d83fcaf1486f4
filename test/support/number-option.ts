import { InvalidArgumentError } from 'commander';

/** Makes the parser of an option that takes a whole number of at least `min`. */
export function wholeFrom(min: number) {
  return (text: string): number => {
    const number = Number(text);
    if (/^\d+$/.test(text) && Number.isSafeInteger(number) && number >= min) return number;
    throw new InvalidArgumentError(`It must be a whole number of at least ${min}.`);
  };
}

/**
 * Makes the parser of an option that takes a number of at least `min`, and at most `max`.
 * @throws InvalidArgumentError of what it is given, which the command prints
 */
export function numberFrom(min: number, max = Number.POSITIVE_INFINITY) {
  return (text: string): number => {
    const number = Number(text);
    if (text.trim() !== '' && Number.isFinite(number) && number >= min && number <= max) return number;
    const atMost = Number.isFinite(max) ? `, and at most ${max}` : '';
    throw new InvalidArgumentError(`It must be a number of at least ${min}${atMost}.`);
  };
}
