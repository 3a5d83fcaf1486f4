import { createTheme, type MantineColorsTuple } from '@mantine/core';

/** Indigo, with enough contrast on white from shade 6 on (WCAG AA). */
const accent: MantineColorsTuple = [
  '#f0f1fe',
  '#e0e3fc',
  '#bdc2f6',
  '#98a0ef',
  '#7681ea',
  '#5c69e3',
  '#4c59d8',
  '#3e4abf',
  '#343fa6',
  '#2a3389',
];

/** Mantine's own grays are tinted; a dark page reads better on these. */
const dark: MantineColorsTuple = [
  '#e6e8ee',
  '#c3c7d1',
  '#a5aab8',
  '#7c8292',
  '#4a4f5c',
  '#373b46',
  '#2a2d36',
  '#1a1c22',
  '#15171c',
  '#101216',
];

const INPUT = { defaultProps: { size: 'sm' } };

/** What people choose from; `auto` is as the system. */
export const SCHEMES = ['light', 'dark', 'auto'] as const;

export const theme = createTheme({
  colors: { accent, dark },
  primaryColor: 'accent',
  primaryShade: { light: 6, dark: 6 },
  defaultRadius: 6,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace',
  fontSizes: { xs: '0.75rem', sm: '0.875rem', md: '0.9375rem', lg: '1.0625rem', xl: '1.25rem' },
  headings: { fontWeight: '600', sizes: { h1: { fontSize: '1.375rem' }, h2: { fontSize: '0.9375rem' } } },
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    Button: { defaultProps: { size: 'xs', fw: 500 } },
    ActionIcon: { defaultProps: { size: 30 } },
    TextInput: INPUT,
    Select: INPUT,
    Textarea: INPUT,
    PasswordInput: INPUT,
    Modal: { defaultProps: { size: 480, padding: 'lg', radius: 10 } },
    // Otherwise it would be a second banner of the page.
    ModalHeader: { defaultProps: { role: 'presentation' } },
    // The focus goes to the first item of a menu at once.
    Menu: {
      defaultProps: {
        position: 'bottom-end',
        shadow: 'md',
        radius: 8,
        withInitialFocusPlaceholder: false,
      },
    },
  },
});
