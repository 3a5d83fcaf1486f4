import { useLocalStorage } from '@mantine/hooks';

const plain = (text: string | undefined) => text ?? '';

/** The currency that was chosen last, in any chart and in any tab; empty: none yet. */
export const useCurrency = () =>
  useLocalStorage({
    key: 'scrip.currency',
    defaultValue: '',
    getInitialValueInEffect: false,
    serialize: plain,
    deserialize: plain,
  });
