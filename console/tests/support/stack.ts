// A real agent on simulated devices, a real controller, and a server that serves the built console as the
// controller will: static files with the security headers, and the development gateway for /v1.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createReadStream, existsSync, mkdtempSync, openSync, rmSync, statSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import { dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { makeGateway, security_headers } from "../../dev/gateway.ts";

const console_folder = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const build = resolve(process.env.CARVE_BUILD ?? join(console_folder, "../build"));
const dist = join(console_folder, "dist");
const wait_ms = 20_000;

const types: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

export async function until<T>(
  what: string,
  read: () => T | Promise<T>,
  limit_ms = wait_ms,
): Promise<Exclude<T, false | null | undefined>> {
  const end = Date.now() + limit_ms;
  let last: unknown = "";
  for (;;) {
    try {
      const value = await read();
      if (value) return value as Exclude<T, false | null | undefined>;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`timeout: ${what} ${last}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

function freePort(): Promise<number> {
  return new Promise((done) => {
    const server = net.createServer();
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => done(port));
    });
  });
}

// Sends a request to a Unix socket.
export function ask(
  socketPath: string,
  path: string,
  method = "GET",
  body?: unknown,
): Promise<{ status: number; value: any }> {
  return new Promise((done, fail) => {
    const request = http.request({ socketPath, path, method, headers: { Host: "carve" } }, (response) => {
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () =>
        done({ status: response.statusCode ?? 0, value: text ? JSON.parse(text) : {} }),
      );
    });
    request.on("error", fail);
    if (body !== undefined) request.write(JSON.stringify(body));
    request.end();
  });
}

export class Stack {
  readonly folder = mkdtempSync(join(tmpdir(), "carve-console-"));
  readonly agentSocket = join(this.folder, "a.sock");
  readonly controllerSocket = join(this.folder, "c.sock");
  readonly codes = { operator: "code-operator", user: "code-user", viewer: "code-viewer" };
  url = "";
  private tcp = "";
  private agent: ChildProcess | null = null;
  private controller: ChildProcess | null = null;
  private server: http.Server | null = null;

  private start(program: string, args: string[]): ChildProcess {
    const path = join(build, "bin", program);
    if (!existsSync(path))
      throw new Error(`${path} does not exist; build it, or set CARVE_BUILD to a folder with a build`);
    const log = openSync(join(this.folder, `${program}.log`), "a");
    return spawn(path, args, { stdio: ["ignore", log, log] });
  }

  async begin(devices = "a10x2") {
    this.tcp = `127.0.0.1:${await freePort()}`;
    this.agent = this.start("carved", [
      "--sim",
      devices,
      "--state",
      join(this.folder, "a"),
      "--socket",
      this.agentSocket,
    ]);
    await until("the agent", async () => (await ask(this.agentSocket, "/v1/version")).status === 200);
    await this.startController();
    const gateway = await makeGateway({ socket: this.controllerSocket, tcp: this.tcp, codes: this.codes });
    this.server = http.createServer((request, response) =>
      gateway(request, response, () => {
        const path = new URL(request.url ?? "/", "http://x").pathname;
        const file = join(dist, path);
        const isFile = file.startsWith(dist) && existsSync(file) && statSync(file).isFile();
        const served = isFile ? file : join(dist, "index.html");
        response.writeHead(200, {
          ...security_headers,
          "Content-Type": types[extname(served)] ?? "application/octet-stream",
        });
        createReadStream(served).pipe(response);
      }),
    );
    const port = await freePort();
    await new Promise<void>((done) => this.server!.listen(port, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${port}`;
  }

  async startController() {
    this.controller = this.start("carve-controller", [
      "--node",
      `n1=${this.agentSocket}`,
      "--state",
      join(this.folder, "c"),
      "--socket",
      this.controllerSocket,
      "--listen",
      this.tcp,
    ]);
    await until(
      "the controller",
      async () =>
        (await ask(this.controllerSocket, "/v1/nodes")).value.items?.[0]?.status.state === "Running",
    );
  }

  async killController() {
    const process = this.controller!;
    const ended = new Promise((done) => process.once("exit", done));
    process.kill("SIGKILL");
    await ended;
    this.controller = null;
  }

  // Runs `carve` and returns its output.
  carve(...args: string[]): string {
    return execFileSync(
      join(build, "bin", "carve"),
      ["--socket", this.agentSocket, "--controller", this.controllerSocket, ...args],
      { encoding: "utf8", cwd: this.folder, stdio: ["ignore", "pipe", "pipe"] },
    );
  }

  controllerGet = async (path: string) => (await ask(this.controllerSocket, path)).value;
  agentSlices = async (): Promise<any[]> => (await ask(this.agentSocket, "/v1/slices")).value.slices;

  async end() {
    // The services end with their objects, so that no program is left.
    for (const kind of ["services", "applications", "jobs"])
      for (const object of (await this.controllerGet(`/v1/${kind}`).catch(() => ({ items: [] }))).items ?? [])
        await ask(this.controllerSocket, `/v1/${kind}/${object.metadata.name}`, "DELETE").catch(() => {});
    await until("the end of the programs", async () => (await this.agentSlices()).length === 0).catch(
      () => {},
    );
    this.server?.closeAllConnections();
    this.server?.close();
    for (const process of [this.controller, this.agent]) {
      if (!process) continue;
      const ended = new Promise((done) => process.once("exit", done));
      process.kill("SIGTERM");
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
