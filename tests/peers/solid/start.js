"use strict";
// Starts the module that compile.js wrote: start.js MODULE FILES PORT BASE_URL.
const [, , module_, rootFilePath, port, baseUrl] = process.argv;
const given = {
  baseUrl,
  rootFilePath,
  port: Number(port),
  socket: undefined,
  loggingLevel: "warn",
  workers: 1,
  showStackTrace: false,
  seedConfig: undefined,
  confirmMigration: false,
};
const named = Object.entries(given).map(([name, value]) => [`urn:solid-server:default:variable:${name}`, value]);

require(module_)(Object.fromEntries(named)).start();
