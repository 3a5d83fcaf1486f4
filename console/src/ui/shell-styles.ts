/** The styles of Mantine that the pages behind the sign-in need, without those of dialogs and messages. */
import '@mantine/core/styles/SimpleGrid.layer.css';
import '@mantine/core/styles/ScrollArea.layer.css';
import '@mantine/core/styles/Popover.layer.css';
import '@mantine/core/styles/Combobox.layer.css';
import '@mantine/core/styles/Menu.layer.css';
import '@mantine/core/styles/Badge.layer.css';
import '@mantine/core/styles/Progress.layer.css';
import '@mantine/core/styles/Kbd.layer.css';
import '@mantine/core/styles/Tabs.layer.css';
import './frame.css';
import './tables.css';
import './media.css';
