import type { Answer } from '../answers.ts';
import { get } from '../api.ts';

/** Checks the installation, as `scrip doctor` does. */
export const INSTALLATION = {
  queryKey: ['installation'],
  queryFn: () => get<Answer<'installation.check'>>('/installation/check'),
  refetchInterval: 300_000,
  retry: false,
} as const;
