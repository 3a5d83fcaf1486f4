import { notifications } from '@mantine/notifications';
import { useTexts } from '../i18n/index.tsx';

/**
 * Returns a function that shows a part once its file is there. If the file is away, it says so, and all that is
 * shown stays: rendered without its file, the part would take the page or the frame with it. Chromium asks for
 * a file that was away only after the page is loaded again.
 */
export function useWhenLoaded() {
  const { noFile } = useTexts().problem;
  return (load: () => Promise<unknown>, show: () => void): void =>
    void load().then(show, () => notifications.show({ color: 'red', message: noFile }));
}
