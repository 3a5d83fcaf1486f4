import { codes as declared } from '../../generated/en.ts';

/** The codes of problems and declines in short. */
export const codes: Readonly<Record<string, string>> = {
  ...declared,
  // Not only redemptions are changed once.
  '58': 'Changed already',
  conflict: 'Not possible now',
  'effect-changed': 'The effect has changed',
  exists: 'It exists already',
  forbidden: 'Not permitted',
  'in-progress': 'Still being done',
  invalid: 'Something is missing or wrong',
  'not-found': 'Not found',
  gone: 'No longer kept',
  'too-many-requests': 'Too many requests',
};
