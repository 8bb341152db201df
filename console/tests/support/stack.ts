// A real agent on simulated devices, and a real controller that serves the built console.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const console_folder = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const build = resolve(process.env.CARVE_BUILD ?? join(console_folder, "../build"));
const dist = join(console_folder, "dist");
const wait_ms = 20_000;

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

export type Role = "operator" | "user" | "viewer";

export class Stack {
  readonly folder = mkdtempSync(join(tmpdir(), "carve-console-"));
  readonly agentSocket = join(this.folder, "a.sock");
  readonly controllerSocket = join(this.folder, "c.sock");
  url = "";
  private tcp = "";
  private secrets = new Map<Role, string>();
  private isUp = false;
  private agent: ChildProcess | null = null;
  private controller: ChildProcess | null = null;

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
    this.url = `http://${this.tcp}`;
  }

  // Starts the agent and the controller as a user does, and returns the console's address with its code.
  async beginWithUp(devices = "a10x2"): Promise<string> {
    this.tcp = `127.0.0.1:${await freePort()}`;
    this.url = `http://${this.tcp}`;
    this.isUp = true;
    const output = this.carve(
      "up",
      "--sim",
      devices,
      "--state",
      join(this.folder, "state"),
      "--listen",
      this.tcp,
    );
    return /^console +(\S+)$/m.exec(output)![1]!;
  }

  // Returns a secret that signs in with the role: an operator's is a one-time code.
  secretOf(role: Role): { code: string } | { token: string } {
    if (role === "operator") return { code: this.carve("console", "--print").trim().split("code=")[1]! };
    const token =
      this.secrets.get(role) ?? this.carve("token", "create", `tests-${role}`, "--role", role).trim();
    this.secrets.set(role, token);
    return { token };
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
      "--console",
      dist,
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
  carve = (...args: string[]): string => this.carveIn(process.env, ...args);

  carveIn(env: NodeJS.ProcessEnv, ...args: string[]): string {
    return execFileSync(
      join(build, "bin", "carve"),
      ["--socket", this.agentSocket, "--controller", this.controllerSocket, ...args],
      { encoding: "utf8", cwd: this.folder, env, stdio: ["ignore", "pipe", "pipe"] },
    );
  }

  controllerGet = async (path: string) => (await ask(this.controllerSocket, path)).value;
  agentSlices = async (): Promise<any[]> => (await ask(this.agentSocket, "/v1/slices")).value.slices;

  // HAProxy, which serves the endpoints, outlives the controller.
  private endHaProxy() {
    const record = join(this.folder, "c/proxy/haproxy.process");
    const pid = existsSync(record) ? Number(readFileSync(record, "utf8").split(/\s+/)[1]) : 0;
    if (pid > 1) process.kill(pid, "SIGTERM");
  }

  async end() {
    if (this.isUp) {
      this.carve("down", "--all");
      rmSync(this.folder, { recursive: true, force: true });
      return;
    }
    // The services end with their objects, so that no program is left.
    for (const kind of ["services", "applications", "jobs"])
      for (const object of (await this.controllerGet(`/v1/${kind}`).catch(() => ({ items: [] }))).items ?? [])
        await ask(this.controllerSocket, `/v1/${kind}/${object.metadata.name}`, "DELETE").catch(() => {});
    await until("the end of the programs", async () => (await this.agentSlices()).length === 0).catch(
      () => {},
    );
    for (const process of [this.controller, this.agent]) {
      if (!process) continue;
      const ended = new Promise((done) => process.once("exit", done));
      process.kill("SIGTERM");
      await ended;
    }
    this.endHaProxy();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
