// Taplo's language server over stdin and stdout, as the editor extension "Even Better TOML" runs it.
const { TaploLsp } = require("@taplo/lsp");
const fs = require("node:fs");
const path = require("node:path");
const { fileURLToPath } = require("node:url");

const environment = {
  now: () => new Date(),
  envVar: (name) => process.env[name],
  envVars: () => Object.entries(process.env),
  stdErrAtty: () => false,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  glob: () => [],
  readFile: (file) => fs.promises.readFile(file),
  writeFile: (file, bytes) => fs.promises.writeFile(file, bytes),
  urlToFilePath: (url) => fileURLToPath(url),
  isAbsolute: (file) => path.isAbsolute(file),
  cwd: () => process.cwd(),
  findConfigFile: () => undefined,
};

function say(message) {
  const body = Buffer.from(JSON.stringify(message));
  process.stdout.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]));
}

// Hands over every whole message of `bytes`; returns what is left.
function take(server, bytes) {
  for (;;) {
    const head = bytes.indexOf("\r\n\r\n");
    if (head < 0) return bytes;
    const length = Number(/Content-Length: (\d+)/i.exec(bytes.subarray(0, head).toString())[1]);
    const end = head + 4 + length;
    if (bytes.length < end) return bytes;
    server.send(JSON.parse(bytes.subarray(head + 4, end).toString()));
    bytes = bytes.subarray(end);
  }
}

TaploLsp.initialize(environment, { onMessage: say }).then((server) => {
  let left = Buffer.alloc(0);
  process.stdin.on("data", (chunk) => {
    left = take(server, Buffer.concat([left, chunk]));
  });
  process.stdin.on("end", () => process.exit(0));
});
