/** A request as code that a reader can run. */

import { resolveUrl } from "./address.ts";

export type CodeLanguage = "curl" | "python" | "javascript";
export const CODE_LANGUAGES: [CodeLanguage, string][] = [
  ["curl", "curl"],
  ["python", "Python"],
  ["javascript", "JavaScript"],
];

/** What stands in place of a file. */
const FILE = "data:…";

/** Return a request of a route in a language. Files are left out. */
export function toCode(language: CodeLanguage, path: string, body: object): string {
  const url = String(resolveUrl(path));
  const shown = shorten(body) as Record<string, unknown>;
  if (language === "curl") return toCurl(url, shown);
  return language === "python" ? toPython(path, shown) : toJavaScript(url, shown);
}

/** Replace data URIs in a value by a mark. */
function shorten(value: unknown): unknown {
  if (typeof value === "string") return value.startsWith("data:") ? FILE : value;
  if (Array.isArray(value)) return value.map(shorten);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, shorten(one)]));
}

function toCurl(url: string, body: object): string {
  const json = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return [
    `curl -N ${url} \\`,
    '  -H "Authorization: Bearer $API_KEY" \\',
    '  -H "Content-Type: application/json" \\',
    `  -d '${json}'`,
  ].join("\n");
}

/** Fields of OpenAI's client; it sends others in `extra_body`. */
const KNOWN: Record<string, string[]> = {
  "v1/chat/completions": [
    ...["model", "messages", "max_tokens", "temperature", "top_p", "stream", "modalities"],
    ...["audio", "tools"],
  ],
  "v1/audio/speech": ["model", "input", "voice", "speed", "response_format", "stream_format"],
};
const METHODS: Record<string, string> = {
  "v1/chat/completions": "chat.completions.create",
  "v1/audio/speech": "audio.speech.create",
};

function toPython(path: string, body: Record<string, unknown>): string {
  const known = KNOWN[path] ?? [];
  const entries = Object.entries(body);
  const own = entries.filter(([name]) => known.includes(name));
  const extra = Object.fromEntries(entries.filter(([name]) => !known.includes(name)));
  const lines = own.map(([name, value]) => `    ${name}=${toPythonValue(value, 1)},`);
  if (Object.keys(extra).length > 0) lines.push(`    extra_body=${toPythonValue(extra, 1)},`);
  const isStream = body["stream"] === true;
  return [
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url="${resolveUrl("v1")}", api_key="none")`,
    `answer = client.${METHODS[path]}(`,
    ...lines,
    ")",
    ...(isStream ? ["for chunk in answer:", "    print(chunk)"] : ["print(answer)"]),
  ].join("\n");
}

function toPythonValue(value: unknown, depth: number): string {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const [inner, outer] = ["    ".repeat(depth + 1), "    ".repeat(depth)];
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    const items = value.map((one) => `${inner}${toPythonValue(one, depth + 1)},`);
    return ["[", ...items, `${outer}]`].join("\n");
  }
  const entries = Object.entries(value).map(
    ([name, one]) => `${inner}${JSON.stringify(name)}: ${toPythonValue(one, depth + 1)},`,
  );
  return ["{", ...entries, `${outer}}`].join("\n");
}

function toJavaScript(url: string, body: object): string {
  return [
    `const response = await fetch("${url}", {`,
    '  method: "POST",',
    '  headers: { "Content-Type": "application/json", Authorization: `Bearer ${apiKey}` },',
    `  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}),`,
    "});",
    "for await (const text of response.body.pipeThrough(new TextDecoderStream())) {",
    "  console.log(text);",
    "}",
  ].join("\n");
}
