import { brotliCompressSync, gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** Text files of the build, compressed once: the service sends them as they are. */
function precompress(): Plugin {
  return {
    name: 'precompress',
    apply: 'build',
    enforce: 'post',
    // Last of all: before it, names of chunks are still placeholders.
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        for (const [fileName, file] of Object.entries(bundle)) {
          if (!/^assets\/.*\.(js|css|json)$/.test(fileName)) continue;
          const source = file.type === 'chunk' ? file.code : file.source;
          this.emitFile({ type: 'asset', fileName: `${fileName}.br`, source: brotliCompressSync(source) });
          this.emitFile({ type: 'asset', fileName: `${fileName}.gz`, source: gzipSync(source) });
        }
      },
    },
  };
}

/** What the frame, the overview and its charts share with a few other pages. */
const FIRST = new RegExp(
  [
    ...['use-local-storage', 'src/ui/choice\\.', 'src/(search|reports)\\.'],
    ...['src/charts/(currency|read)\\.', 'src/ui/(inbox|keys|installation)\\.'],
  ].join('|'),
);

/** Dialogs with their styles: no page begins with one. */
const DIALOG =
  /src\/ui\/dialog|components\/Modal(Base)?\/|styles\/(Overlay|ModalBase|Modal|InlineInput|Checkbox)\.layer/;

/** What most pages need, and the overview does not: their head, and lists to choose from. */
const PAGE = /components\/(ScrollArea|Tabs)\/|Combobox\/OptionsDropdown|src\/ui\/(page|same|thing|command)\./;

/** The console and the portal are two pages of one build. src/http/console.ts serves it. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  plugins: [react(), precompress()],
  build: {
    manifest: true,
    // A policy without inline scripts: nothing may be inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 800,
    rollupOptions: {
      output: {
        // Many small files cost more than their content, since each answer has its own headers.
        codeSplitting: {
          groups: [
            { name: 'react', test: /node_modules\/(react|react-dom|scheduler|@tanstack\/[a-z-]+)\// },
            { name: 'start', tags: ['$initial'], minShareCount: 2 },
            // No page is a dialog at first.
            { name: 'dialog', test: DIALOG, includeDependenciesRecursively: false },
            { name: 'chart', test: /src\/charts\/(chart|panel)\./, includeDependenciesRecursively: false },
            { name: 'page', minShareCount: 8, test: PAGE, includeDependenciesRecursively: false },
            // What a quarter of the pages need.
            { name: 'frame', minShareCount: 8 },
            // Small ones that the first page loads anyway, in one file instead of nine.
            { name: 'first', minShareCount: 2, test: FIRST, includeDependenciesRecursively: false },
          ],
        },
      },
      input: { console: `${import.meta.dirname}/index.html`, portal: `${import.meta.dirname}/portal.html` },
    },
  },
  server: {
    proxy: {
      '/operator': 'http://127.0.0.1:8080',
      '/portal/v1': 'http://127.0.0.1:8080',
      '/docs': 'http://127.0.0.1:8080',
      '/readyz': 'http://127.0.0.1:8080',
    },
  },
});
