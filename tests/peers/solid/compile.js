"use strict";
// Writes the server of config.json as one module: putting it together from the descriptions takes seconds of CPU.
const { writeFileSync } = require("node:fs");
const { dirname, join } = require("node:path");
const { ComponentsManager, ConstructionStrategyCommonJsString } = require("componentsjs");

async function compile(target) {
  const strategy = new ConstructionStrategyCommonJsString({ asFunction: true, req: require });
  const manager = await ComponentsManager.build({
    mainModulePath: dirname(require.resolve("@solid/community-server/package.json")),
    constructionStrategy: strategy,
    typeChecking: false,
    dumpErrorState: false,
    configLoader: (registry) => registry.register(join(__dirname, "config.json")),
  });
  const app = await manager.instantiate("urn:solid-server:default:App");
  writeFileSync(target, strategy.serializeDocument(app));
}

compile(process.argv[2]);
