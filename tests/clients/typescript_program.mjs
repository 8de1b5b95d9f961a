// One program for each case: `node typescript_program.mjs NODE_MODULES CASE OPTIONS`. Prints what it saw as JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, name, given] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(createRequire(`${modules}/`).resolve(path)).href);
const { createSdkMcpServer, query, tool } = await load("@anthropic-ai/claude-agent-sdk");
const { z } = await load("zod");
const options = { ...JSON.parse(given), stderr: (text) => told.stderr.push(text) };
const told = { messages: [], stderr: [], asked: [], error: null };

async function* prompts(...texts) {
  for (const text of texts) {
    yield { type: "user", message: { role: "user", content: text }, parent_tool_use_id: null };
  }
}

async function read(prompt, more = {}) {
  for await (const message of query({ prompt, options: { ...options, ...more } })) told.messages.push(message);
}

const cases = {
  text: () => read("Hello"),
  stream: () => read(prompts("first", "second")),
  bypass: () => read("go", { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true }),
  allow: () =>
    read(prompts("go"), {
      canUseTool: async (tool, input) => {
        told.asked.push(tool);
        return { behavior: "allow", updatedInput: { ...input, content: "changed\n" } };
      },
    }),
  deny: () => read(prompts("go"), { canUseTool: async () => ({ behavior: "deny", message: "Not this one." }) }),
  hooks: () => {
    const before = async (event) => {
      told.asked.push(`${event.hook_event_name} ${event.tool_name}`);
      const decision = { permissionDecision: "deny", permissionDecisionReason: "It is forbidden." };
      return { hookSpecificOutput: { hookEventName: "PreToolUse", ...decision } };
    };
    return read(prompts("go"), { hooks: { PreToolUse: [{ matcher: "Bash", hooks: [before] }] } });
  },
  tools: () => {
    const add = tool("add", "Add two numbers.", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
      content: [{ type: "text", text: `the sum is ${a + b}` }],
    }));
    const calc = createSdkMcpServer({ name: "calc", version: "1.0.0", tools: [add] });
    return read(prompts("go"), { mcpServers: { calc }, allowedTools: ["mcp__calc__add"] });
  },
  system: () => read("go", { systemPrompt: "MARK of the program." }),
  append: () => read("go", { systemPrompt: { type: "preset", preset: "claude_code", append: "MARK behind it." } }),
  schema: () => {
    const schema = { type: "object", properties: { count: { type: "integer" } }, required: ["count"] };
    return read("How many?", { outputFormat: { type: "json_schema", schema } });
  },
  agents: () =>
    read("go", {
      agents: { reviewer: { description: "Reviews.", prompt: "MARK of the reviewer.", tools: ["Read"] } },
    }),
  partial: () => read("go", { includePartialMessages: true }),
  resume: async () => {
    await read("Remember walnut.");
    const id = told.messages.at(-1).session_id;
    await read("Which?", { resume: id });
    await read("And now?", { resume: id, forkSession: true });
  },
  turns: () => read("go", { maxTurns: 1, allowedTools: ["Bash"] }),
  extra: () => read("go", { additionalDirectories: ["/tmp"], disallowedTools: ["Write"], persistSession: false }),
  control: async () => {
    let go;
    const second = new Promise((resolve) => (go = resolve));
    async function* talk() {
      yield* prompts("first");
      await second;
      yield* prompts("second");
    }
    const asked = query({ prompt: talk(), options });
    told.commands = (await asked.supportedCommands()).map((one) => one.name);
    told.models = (await asked.supportedModels()).length;
    told.servers = await asked.mcpServerStatus();
    for await (const message of asked) {
      told.messages.push(message);
      if (message.type === "result" && go) {
        await asked.setModel("claude-haiku-4-5");
        await asked.setPermissionMode("acceptEdits");
        go();
        go = null;
      }
    }
  },
  interrupt: async () => {
    let done;
    const over = new Promise((resolve) => (done = resolve));
    async function* talk() {
      yield* prompts("Tell me a story.");
      await over;
    }
    const asked = query({ prompt: talk(), options: { ...options, includePartialMessages: true } });
    let stopped = false;
    for await (const message of asked) {
      told.messages.push(message);
      if (message.type === "stream_event" && !stopped) {
        stopped = true;
        await asked.interrupt();
      }
      if (message.type === "result") done();
    }
  },
};

try {
  await cases[name]();
} catch (error) {
  told.error = String(error);
}
console.log(JSON.stringify(told));
process.exit(0);
