import { actions } from './de.actions.ts';
import { fields } from './de.fields.ts';
import { checks, nouns, words } from './de.words.ts';
import type { Labels } from './en.labels.ts';

export const labels: Labels = { fields, words, nouns, actions, checks };
