// A reverse proxy on loopback that adds a bearer token, for clients that cannot be given one: `node bearer_proxy.mjs PORT
// TOKEN` prints the port on which it listens.
import http from "node:http";

const [port, token] = process.argv.slice(2);
const server = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  const { method, url: path } = request;
  const forwarded = http.request({ host: "127.0.0.1", port, method, path, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  forwarded.on("error", () => response.destroy());
  request.pipe(forwarded);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
