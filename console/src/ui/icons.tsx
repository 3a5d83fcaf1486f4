/** Strokes of 1.5 on a grid of 20, drawn for these pages. */
const PATHS = {
  overview: 'M3 10.5 10 4l7 6.5M5 9v7h10V9',
  vouchers: 'M3 6h14v3a1.5 1.5 0 0 0 0 3v3H3v-3a1.5 1.5 0 0 0 0-3zM12 6v9',
  transactions: 'M4 7h12l-3-3M16 13H4l3 3',
  batches: 'M10 3 3 6.5l7 3.5 7-3.5zM3 10l7 3.5L17 10M3 13.5 10 17l7-3.5',
  merchants:
    'M3.5 8 5 4h10l1.5 4M3.5 8v8h13V8M3.5 8a2.2 2.2 0 0 0 4.3 0 2.2 2.2 0 0 0 4.4 0 2.2 2.2 0 0 0 4.3 0',
  products: 'M3 3h6l8 8-6 6-8-8zM6.5 6.5h.01',
  webhooks:
    'M10 7.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM5 17a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM15 17a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM8.800 7.200 6.200 12.300M11.200 7.200 13.800 12.300M7.500 14.500h5',
  books: 'M4 3.500h5.500L10 4l.5-.5H16v13h-5.500l-.5.5-.5-.5H4zM10 4v13',
  settlements: 'M3 8h14L10 3.500zM5 8v6M8.500 8v6M11.500 8v6M15 8v6M3 16.500h14',
  bank: 'M3 5h14v10H3zM3 8.500h14M6 12h3',
  approvals: 'M4 10.500 8 14.500 16 5.500',
  audit: 'M5 3h7l3 3v11H5zM8 9h4M8 12h4',
  users:
    'M7.500 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.500 16.500c.5-3 2.500-4 5-4s4.500 1 5 4M13 4.500a2.800 2.800 0 0 1 0 5.200M15 12.700c1.500.5 2.300 1.700 2.500 3.800',
  tokens: 'M12.500 11a4 4 0 1 0-3.600-2.300L3 14.500V17h3v-2h2l2.800-4.300M13.500 6.500h.01',
  system: 'M3 4h14v5H3zM3 11h14v5H3zM6 6.500h.01M6 13.500h.01',
  settings: 'M4 6h6M14 6h2M12 4v4M4 14h2M10 14h6M8 12v4',
  search: 'M9 14.500a5.500 5.500 0 1 0 0-11 5.500 5.500 0 0 0 0 11zM13 13l4 4',
  check: 'M4 4h12v12H4zM7 10l2 2 4-4',
  till: 'M5 3h10v5H5zM3 8h14v8H3zM3 12h14M7 10h.01M10 10h.01M13 10h.01',
  floats: 'M3 6h14v10H3zM3 6l9-3v3M13 11h.01',
  keys: 'M12.500 11a4 4 0 1 0-3.600-2.300L3 14.500V17h3v-2h2l2.800-4.300M13.500 6.500h.01',
  reconcile: 'M4 5h5M4 9h5M4 13h5M12 6l1.500 1.500L16.500 4.500M12 13h4',
  docs: 'M7 5 3 10l4 5M13 5l4 5-4 5',
  bell: 'M5 14h10l-1-2V9a4 4 0 0 0-8 0v3zM8.500 16.500h3M10 3v2',
  chart: 'M3 16h14M6 13V9M10 13V5M14 13v-6',
  table: 'M3 4h14v12H3zM3 8h14M3 12h14M8 8v8',
  menu: 'M3 6h14M3 10h14M3 14h14',
  more: 'M5 10h.01M10 10h.01M15 10h.01',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === 'more' ? 2.2 : 1.5}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
