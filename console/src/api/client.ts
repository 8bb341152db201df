// Calls the controller's API. Every failure is an ApiError with a Problem, also if there was no response.
import { pageKey } from "./page-key";
import type { Problem } from "./types";

export class ApiError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail || problem.title);
  }
}

export interface Reply<T> {
  value: T;
  etag: string; // The object's version for If-Match; empty if the response has none.
  warnings: string[]; // The texts of the Warning headers.
}

export interface CallOptions {
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown; // Sent as JSON, a string as it is.
  contentType?: string; // The type of a string; text/plain without it.
  ifMatch?: string;
  signal?: AbortSignal;
  accept?: string;
}

// Encodes each value of a path: path`/v1/services/${name}`.
export function path(parts: TemplateStringsArray, ...values: string[]): string {
  return parts.reduce(
    (text, part, i) => text + part + (i < values.length ? encodeURIComponent(values[i]!) : ""),
    "",
  );
}

export function withQuery(target: string, query: CallOptions["query"] = {}): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined && value !== "" && value !== false) parameters.set(key, String(value));
  const text = parameters.toString();
  return text ? `${target}?${text}` : target;
}

function problemOf(error: unknown): Problem {
  if (error instanceof DOMException && error.name === "AbortError") throw error;
  return {
    type: "carve:no-response",
    title: "no response",
    status: 0,
    detail: "the controller does not respond",
    reasons: [],
  };
}

async function readProblem(response: Response): Promise<Problem> {
  const text = await response.text();
  try {
    const problem = JSON.parse(text) as Problem;
    if (typeof problem.type === "string" && problem.type.startsWith("carve:"))
      return { ...problem, reasons: problem.reasons ?? [] };
  } catch {
    // The response is not from the controller.
  }
  return {
    type: "carve:unavailable",
    title: response.statusText,
    status: response.status,
    detail: text.slice(0, 300),
    reasons: [],
  };
}

// Returns the texts of `299 - "TEXT"`, of which the browser joins several with ", ".
export function warningTexts(header: string | null): string[] {
  return [...(header ?? "").matchAll(/299 - "((?:[^"\\]|\\.)*)"/g)].map(([, text]) =>
    text!.replace(/\\(.)/g, "$1"),
  );
}

let onUnauthenticated = () => {};
export function whenUnauthenticated(handler: () => void) {
  onUnauthenticated = handler;
}

async function send(method: string, target: string, options: CallOptions): Promise<Response> {
  const headers: Record<string, string> = { Accept: options.accept ?? "application/json" };
  const key = pageKey();
  if (key) headers["Carve-Page-Key"] = key;
  if (options.body !== undefined)
    headers["Content-Type"] =
      typeof options.body === "string" ? (options.contentType ?? "text/plain") : "application/json";
  if (options.ifMatch) headers["If-Match"] = options.ifMatch;
  let response: Response;
  try {
    response = await fetch(withQuery(target, options.query), {
      method,
      headers,
      signal: options.signal ?? null,
      body:
        options.body === undefined
          ? null
          : typeof options.body === "string"
            ? options.body
            : JSON.stringify(options.body),
    });
  } catch (error) {
    throw new ApiError(problemOf(error));
  }
  if (response.ok) return response;
  const problem = await readProblem(response);
  if (response.status === 401 && !target.startsWith("/v1/session")) onUnauthenticated();
  throw new ApiError(problem);
}

// Opens a stream of server-sent events, which api/events.ts reads.
export async function openStream(target: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const response = await send("GET", target, { accept: "text/event-stream", signal });
  return response.body!;
}

export async function call<T>(method: string, target: string, options: CallOptions = {}): Promise<Reply<T>> {
  const response = await send(method, target, options);
  const text = await response.text();
  return {
    value: (text ? JSON.parse(text) : {}) as T,
    etag: response.headers.get("ETag") ?? "",
    warnings: warningTexts(response.headers.get("Warning")),
  };
}

export const get = async <T>(target: string, query?: CallOptions["query"], signal?: AbortSignal) =>
  (await call<T>("GET", target, { ...(query && { query }), ...(signal && { signal }) })).value;
export const post = async <T>(
  target: string,
  body: unknown = {},
  query?: CallOptions["query"],
  signal?: AbortSignal,
) => (await call<T>("POST", target, { body, ...(query && { query }), ...(signal && { signal }) })).value;
// Sends the text of a document, JSON or YAML, as it is.
export const postDocument = async <T>(
  target: string,
  text: string,
  query: CallOptions["query"] = {},
  signal?: AbortSignal,
) =>
  (
    await call<T>("POST", target, {
      body: text,
      contentType: "application/json",
      query,
      ...(signal && { signal }),
    })
  ).value;
export const getText = async (target: string, query?: CallOptions["query"], accept = "text/plain") =>
  (await send("GET", target, { accept, ...(query && { query }) })).text();
