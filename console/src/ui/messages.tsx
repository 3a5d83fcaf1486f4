import '@mantine/core/styles/Notification.layer.css';
import '@mantine/notifications/styles.layer.css';
import { Notifications } from '@mantine/notifications';

/** What was done, or what failed, in the corner of the page. */
export const Messages = () => <Notifications position="bottom-right" />;
