import { InvalidArgumentError } from 'commander';

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
