// Replaces the part of the controller that serves the console, until the controller does so itself: it
// signs callers in with a one-time code or a token, keeps sessions in cookies, and forwards /v1, /openapi.json
// and /metrics with the session's token. It is for development and tests only: README.md describes the
// interface that the controller implements.
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import http, { type IncomingMessage, type ServerResponse } from "node:http";

export interface Session {
  name: string;
  role: "viewer" | "user" | "operator";
  account: string;
  expiresAt: string;
}
interface StoredSession extends Session {
  token: string;
}
export interface GatewayOptions {
  socket: string; // The controller's Unix socket, on which the gateway is an operator.
  tcp: string; // The controller's TCP address, host:port.
  codes?: Partial<Record<Session["role"], string>>; // Codes that can be used any number of times, for tests.
}

const max_body_bytes = 4096;
const session_seconds = 12 * 3600;
export const security_headers = {
  "Content-Security-Policy":
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

function sendJson(response: ServerResponse, status: number, value: unknown) {
  response.writeHead(status, {
    "Content-Type": status < 300 ? "application/json" : "application/problem+json",
    "Cache-Control": "no-store",
  });
  response.end(JSON.stringify(value));
}

function sendProblem(response: ServerResponse, status: number, type: string, detail: string) {
  sendJson(response, status, {
    type: `carve:${type}`,
    title: type.replaceAll("-", " "),
    status,
    detail,
    reasons: [],
  });
}

function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    request.on("data", (chunk) => {
      text += chunk;
      if (text.length > max_body_bytes) reject(new Error("the body is too long"));
    });
    request.on("end", () => resolve(text));
    request.on("error", reject);
  });
}

// Sends a request to the controller and returns the status and the parsed body.
function ask(
  options: http.RequestOptions,
  body?: unknown,
): Promise<{ status: number; value: Record<string, unknown> }> {
  return new Promise((resolve, reject) => {
    const request = http.request(options, (response) => {
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, value: text ? JSON.parse(text) : {} }),
      );
    });
    request.on("error", reject);
    if (body !== undefined) request.write(JSON.stringify(body));
    request.end();
  });
}

export async function makeGateway(options: GatewayOptions) {
  const [host, port] = options.tcp.split(":") as [string, string];
  const sessions = new Map<string, StoredSession>();
  const tokens = new Map<string, Omit<StoredSession, "expiresAt">>(); // By secret.

  const expiresAt = () => new Date(Date.now() + session_seconds * 1000).toISOString();
  const bearer = (token: string) => ({ Authorization: `Bearer ${token}`, Host: options.tcp });

  // Creates a token for a code. The controller itself needs none.
  async function tokenFor(role: Session["role"]) {
    for (const known of tokens.values()) if (known.role === role) return known;
    const account = execFileSync("id", ["-un"]).toString().trim();
    const name = `console-${role}-${randomBytes(3).toString("hex")}`;
    const made = await ask(
      { socketPath: options.socket, path: "/v1/tokens", method: "POST" },
      { name, role, account, days: 1 },
    );
    if (made.status >= 300) throw new Error(`POST /v1/tokens: ${JSON.stringify(made.value)}`);
    const token = String(made.value.token);
    tokens.set(token, { name, role, account, token });
    return tokens.get(token)!;
  }

  // Finds out the role of a pasted token by what it may do.
  async function readToken(token: string): Promise<Omit<StoredSession, "expiresAt"> | null> {
    const known = tokens.get(token);
    if (known) return known;
    const at = (path: string, method = "GET"): http.RequestOptions => ({
      host,
      port,
      path,
      method,
      headers: bearer(token),
    });
    if ((await ask(at("/v1/version"))).status !== 200) return null;
    if ((await ask(at("/v1/tokens"))).status === 200)
      return { name: "token", role: "operator", account: "", token };
    const probe = {
      apiVersion: "carve.dev/v1",
      kind: "Service",
      metadata: { name: "probe" },
      spec: { run: { command: ["true"] } },
    };
    const tried = await ask(at("/v1/documents?dryRun=true", "POST"), probe);
    const account = /account (\S+)/.exec(String(tried.value.detail))?.[1] ?? "";
    return { name: "token", role: tried.status === 403 ? "viewer" : "user", account, token };
  }

  const cookieOf = (request: IncomingMessage) =>
    /(?:^|; )carve_session=([A-Za-z0-9_-]+)/.exec(request.headers.cookie ?? "")?.[1] ?? "";

  async function handleSession(request: IncomingMessage, response: ServerResponse) {
    const id = cookieOf(request);
    if (request.method === "GET") {
      const session = sessions.get(id);
      if (!session) return sendProblem(response, 401, "unauthenticated", "no session; sign in");
      const { token: _, ...shown } = session;
      return sendJson(response, 200, shown);
    }
    if (request.method === "DELETE") {
      sessions.delete(id);
      response.setHeader("Set-Cookie", "carve_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
      return sendJson(response, 200, {});
    }
    if (request.method !== "POST")
      return sendProblem(response, 405, "invalid-argument", "GET, POST or DELETE");
    const body = JSON.parse((await readBody(request)) || "{}") as { code?: string; token?: string };
    let found: Omit<StoredSession, "expiresAt"> | null = null;
    if (body.token) found = await readToken(body.token);
    else
      for (const role of ["operator", "user", "viewer"] as const)
        if (body.code && options.codes?.[role] === body.code) found = await tokenFor(role);
    if (!found)
      return sendProblem(
        response,
        401,
        "unauthenticated",
        body.token ? "the token is not valid" : "the code is not valid; print a new one: carve console",
      );
    const secret = randomBytes(24).toString("base64url");
    const session = { ...found, expiresAt: expiresAt() };
    sessions.set(secret, session);
    response.setHeader(
      "Set-Cookie",
      `carve_session=${secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${session_seconds}`,
    );
    const { token: _, ...shown } = session;
    sendJson(response, 200, shown);
  }

  function forward(request: IncomingMessage, response: ServerResponse, session: StoredSession) {
    const headers: http.OutgoingHttpHeaders = { ...request.headers, ...bearer(session.token) };
    for (const name of ["host", "authorization", "origin", "cookie", "connection", "referer"])
      delete headers[name];
    headers.Host = options.tcp;
    headers.Authorization = `Bearer ${session.token}`;
    const onward = http.request(
      { host, port, path: request.url, method: request.method, headers },
      (answer) => {
        const { connection: _, ...rest } = answer.headers;
        response.writeHead(answer.statusCode ?? 502, rest);
        answer.pipe(response);
        answer.on("error", () => response.destroy());
        response.on("close", () => answer.destroy());
      },
    );
    onward.on("error", () =>
      response.headersSent
        ? response.destroy()
        : sendProblem(response, 503, "unavailable", "the controller does not respond"),
    );
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  }

  return (request: IncomingMessage, response: ServerResponse, next: () => void) => {
    const target = request.url ?? "/";
    if (process.env.NODE_ENV !== "development")
      for (const [name, value] of Object.entries(security_headers)) response.setHeader(name, value);
    const isApi = /^\/(v1\/|openapi\.json|metrics)/.test(target);
    if (!isApi) return next();
    const origin = request.headers.origin;
    if (origin && new URL(origin).host !== request.headers.host)
      return sendProblem(response, 403, "permission-denied", "foreign Origin");
    if (target === "/v1/session") {
      handleSession(request, response).catch((error) =>
        sendProblem(response, 503, "unavailable", String(error.message)),
      );
      return;
    }
    const session = sessions.get(cookieOf(request));
    if (!session || Date.parse(session.expiresAt) < Date.now())
      return sendProblem(response, 401, "unauthenticated", "no session; sign in");
    forward(request, response, session);
  };
}

export async function gatewayFromEnvironment() {
  const { CARVE_CONTROLLER, CARVE_CONTROLLER_TCP = "127.0.0.1:8470", CARVE_CONSOLE_CODE } = process.env;
  if (!CARVE_CONTROLLER) throw new Error("set CARVE_CONTROLLER to the controller's socket");
  const code = CARVE_CONSOLE_CODE ?? randomBytes(9).toString("base64url");
  const codes = { operator: code, user: `${code}-user`, viewer: `${code}-viewer` };
  for (const [role, value] of Object.entries(codes))
    console.log(`  sign in as ${role}: /login?code=${value}`);
  return makeGateway({ socket: CARVE_CONTROLLER, tcp: CARVE_CONTROLLER_TCP, codes });
}
