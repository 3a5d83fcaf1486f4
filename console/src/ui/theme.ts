import { createTheme, type MantineColorsTuple } from '@mantine/core';

/** Indigo, with enough contrast on white from shade 6 on (WCAG AA). */
const accent: MantineColorsTuple = [
  '#eef0ff',
  '#dcdffb',
  '#b5bbf1',
  '#8c95e8',
  '#6a75e0',
  '#5561db',
  '#4a56d9',
  '#3b47c1',
  '#333fad',
  '#283599',
];

export const theme = createTheme({
  colors: { accent },
  primaryColor: 'accent',
  primaryShade: { light: 6, dark: 5 },
  defaultRadius: 'md',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace',
  headings: { fontWeight: '600', sizes: { h1: { fontSize: '1.5rem' }, h2: { fontSize: '1.125rem' } } },
  components: {
    Button: { defaultProps: { size: 'sm' } },
    Table: { defaultProps: { verticalSpacing: 'xs', horizontalSpacing: 'md', highlightOnHover: true } },
  },
});
