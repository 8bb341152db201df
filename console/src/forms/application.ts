// The form of an application and its document.
import { joinCommand, pairsText, readPairs, splitCommand, textOf } from "./number";

export type GpuType = "none" | "mGPU" | "GPU";
export interface ApplicationForm {
  name: string;
  runs: "command" | "image";
  command: string;
  image: string;
  workdir: string;
  env: string;
  port: string;
  pool: string;
  replicas: string;
  isElastic: boolean;
  cpuRequest: string;
  cpuLimit: string;
  memoryRequest: string;
  memoryLimit: string;
  gpuType: GpuType;
  isMultiDevice: boolean;
  compute: string;
  memory: string; // MiB
  policy: string;
  devices: string;
}

export const new_application: ApplicationForm = {
  name: "",
  runs: "command",
  command: "",
  image: "",
  workdir: "",
  env: "",
  port: "8000",
  pool: "",
  replicas: "1",
  isElastic: false,
  cpuRequest: "",
  cpuLimit: "",
  memoryRequest: "",
  memoryLimit: "",
  gpuType: "mGPU",
  isMultiDevice: false,
  compute: "0.3",
  memory: "4096",
  policy: "",
  devices: "",
};

// The three policies, with the vendor's words and an explanation of one line.
export const policies = [
  { value: "fixed-share", chinese: "固定配额" },
  { value: "guaranteed-burst-share", chinese: "固定争抢" },
  { value: "native-burst-share", chinese: "争抢模式" },
] as const;

type Json = Record<string, unknown>;
const integerOrText = (text: string) => (/^\d+$/.test(text.trim()) ? Number(text) : text.trim());

// Adds the fields whose text is not empty.
function filled(fields: Record<string, string>): Json | undefined {
  const entries = Object.entries(fields).filter(([, text]) => text.trim() !== "");
  return entries.length ? Object.fromEntries(entries.map(([key, text]) => [key, text.trim()])) : undefined;
}

function gpuOf(form: ApplicationForm): Json | undefined {
  if (form.gpuType === "none") return undefined;
  const gpu: Json = { type: form.gpuType };
  if (form.gpuType === "mGPU") {
    if (form.isMultiDevice) gpu.multiDevice = true;
    Object.assign(gpu, filled({ compute: form.compute, memory: form.memory, policy: form.policy }));
  }
  if (form.devices.trim() !== "" && (form.gpuType === "GPU" || form.isMultiDevice))
    gpu.devices = integerOrText(form.devices);
  return gpu;
}

export function applicationDocument(form: ApplicationForm): Json {
  const spec: Json = { replicas: integerOrText(form.replicas) };
  if (form.pool) spec.pool = form.pool;
  if (form.isElastic) spec.elasticContainer = true;
  const cpu = filled({ request: form.cpuRequest, limit: form.cpuLimit });
  const memory = filled({ request: form.memoryRequest, limit: form.memoryLimit });
  if (cpu) spec.cpu = cpu;
  if (memory) spec.memory = memory;
  const gpu = gpuOf(form);
  if (gpu) spec.gpu = gpu;
  const command = splitCommand(form.command);
  const env = readPairs(form.env);
  spec.run = {
    ...(command.length ? { command } : {}),
    ...(form.runs === "image" && form.image.trim() ? { image: form.image.trim() } : {}),
    ...(Object.keys(env).length ? { env } : {}),
    ...(form.workdir.trim() ? { workdir: form.workdir.trim() } : {}),
  };
  if (form.port.trim() !== "") spec.port = integerOrText(form.port);
  return { apiVersion: "carve.dev/v1", kind: "Application", metadata: { name: form.name.trim() }, spec };
}

// Reads a stored application.
export function readApplication(name: string, spec: Json): ApplicationForm {
  const part = (value: unknown) => (value ?? {}) as Json;
  const gpu = part(spec.gpu);
  const run = part(spec.run);
  return {
    name,
    runs: run.image ? "image" : "command",
    command: joinCommand((run.command as string[] | undefined) ?? []),
    image: textOf(run.image),
    workdir: textOf(run.workdir),
    env: pairsText((run.env as Record<string, string> | undefined) ?? {}),
    port: spec.port ? textOf(spec.port) : "",
    pool: textOf(spec.pool),
    replicas: textOf(spec.replicas),
    isElastic: spec.elasticContainer === true,
    cpuRequest: textOf(part(spec.cpu).request),
    cpuLimit: textOf(part(spec.cpu).limit),
    memoryRequest: textOf(part(spec.memory).request),
    memoryLimit: textOf(part(spec.memory).limit),
    gpuType: ((gpu.type as GpuType | undefined) ?? "none") || "none",
    isMultiDevice: gpu.multiDevice === true,
    compute: textOf(gpu.compute),
    memory: textOf(gpu.memory),
    policy: textOf(gpu.policy),
    devices: gpu.devices ? textOf(gpu.devices) : "",
  };
}
