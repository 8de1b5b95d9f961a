// What a user of the official TypeScript client does with the server, told as one line of JSON.
// Arguments: the folder that the package is in, then --http with an address and a token, or the server's command.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, ...rest] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { ElicitRequestSchema, ResourceListChangedNotificationSchema } = await load("types.js");

const told = { asked: [], progress: [], changes: 0 };
const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
  told.asked.push(params.message);
  return { action: "accept", content: { decision: "allow" } };
});
client.setNotificationHandler(ResourceListChangedNotificationSchema, () => { told.changes += 1; });

function transport() {
  if (rest[0] !== "--http") return new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env });
  const headers = { Authorization: `Bearer ${rest[2]}` };
  return new StreamableHTTPClientTransport(new URL(rest[1]), { requestInit: { headers } });
}

const bash = (command, options) => client.callTool({ name: "Bash", arguments: { command } }, undefined, options);

await client.connect(transport());
told.tools = (await client.listTools()).tools.map((tool) => tool.name);
await client.callTool({ name: "Write", arguments: { file_path: "new.txt", content: "new\n" } });
const [resource] = (await client.listResources()).resources;
told.resource = (await client.readResource({ uri: resource.uri })).contents[0].text;
await bash("echo first; sleep 0.5", { onprogress: ({ message }) => told.progress.push(message) });
const many = await Promise.all(Array.from({ length: 100 }, (_, number) => bash(`echo ${number}`)));
told.answers = many.map((result) => result.content[0].text);
const giveUp = new AbortController();
const hopeless = bash("sleep 600", { signal: giveUp.signal, onprogress: () => {} });
giveUp.abort();
told.cancelled = await hopeless.then(() => false, () => true);
await client.close();
console.log(JSON.stringify(told));
process.exit(0);
