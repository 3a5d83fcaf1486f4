// Runs at the end of `npm ci`. On platforms without a package of Node, npm would go on with its own, which may
// be too old for the project.
'use strict';
const OLDEST_MAJOR = 24;
if (Number(process.versions.node.split('.')[0]) < OLDEST_MAJOR) {
  console.error(
    `Scrip needs Node ${OLDEST_MAJOR}, and this is ${process.version}. npm installs it on Linux, for x64 and arm64, ` +
      'unless optional dependencies are omitted. Elsewhere, install it first.',
  );
  process.exitCode = 1;
}
