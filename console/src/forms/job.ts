// The forms of jobs and Ray clusters, with the parameters of EMR Serverless mGPU, and their documents.
import { numberOrText, readPairs, splitCommand } from "./number";

export type Engine = "custom" | "spark" | "ray";
export type QueueGpu = "none" | "gpu" | "mgpu";

export interface JobForm {
  name: string;
  queue: string;
  computeGroup: string;
  engine: Engine;
  usesGpu: boolean;
  core: string; // emr.serverless.mgpu.core
  memory: string; // emr.serverless.mgpu.memory, MiB
  devices: string; // Whole devices, on a GPU queue.
  taskAmount: string; // spark.task.resource.gpu.amount
  parameters: Record<string, string>; // Further parameters; they replace those of the fields above.
  command: string;
  env: string;
  workdir: string;
  engineHome: string;
  python: string;
  workers: string;
  tasks: string;
  priority: string;
  retries: string;
  deadline: string; // Seconds
}

export const new_job: JobForm = {
  name: "",
  queue: "",
  computeGroup: "default",
  engine: "custom",
  usesGpu: true,
  core: "30",
  memory: "4096",
  devices: "1",
  taskAmount: "0.1",
  parameters: {},
  command: "",
  env: "",
  workdir: "",
  engineHome: "",
  python: "",
  workers: "1",
  tasks: "1",
  priority: "0",
  retries: "0",
  deadline: "",
};

export const core_key = "emr.serverless.mgpu.core";
export const memory_key = "emr.serverless.mgpu.memory";
const discovery_script = "/opt/emr/current/spark/examples/src/main/scripts/getGpusResources.sh";

// The parameters that the form's fields mean: the engine's own GPU parameters, and the two of mGPU.
export function gpuParameters(form: JobForm, gpu: QueueGpu): Record<string, string> {
  if (gpu === "none" || !form.usesGpu) return {};
  const amount = gpu === "mgpu" ? "1" : form.devices.trim();
  const out: Record<string, string> = {};
  if (form.engine === "custom") {
    out["serverless.custom.job.gpu.enabled"] = "true";
    out["serverless.custom.job.task.gpus"] = amount;
  } else if (form.engine === "ray") {
    out["serverless.ray.worker.gpu.vendor"] = "nvidia.com";
    out["serverless.ray.worker.gpu.amount"] = amount;
  } else {
    for (const role of ["driver", "executor", "task"]) {
      out[`spark.${role}.resource.gpu.discoveryScript`] = discovery_script;
      out[`spark.${role}.resource.gpu.vendor`] = "nvidia.com";
      out[`spark.${role}.resource.gpu.amount`] = role === "task" ? form.taskAmount.trim() : amount;
    }
  }
  if (gpu === "mgpu") {
    out[core_key] = form.core.trim();
    out[memory_key] = form.memory.trim();
  }
  return out;
}

type Json = Record<string, unknown>;

export function jobDocument(form: JobForm, gpu: QueueGpu): Json {
  const env = readPairs(form.env);
  const spec: Json = {
    queue: form.queue,
    computeGroup: form.computeGroup,
    engine: form.engine,
    parameters: { ...gpuParameters(form, gpu), ...form.parameters },
    run: {
      command: splitCommand(form.command),
      ...(Object.keys(env).length ? { env } : {}),
      ...(form.workdir.trim() ? { workdir: form.workdir.trim() } : {}),
    },
  };
  if (form.engine !== "custom") {
    if (form.engineHome.trim()) spec.engineHome = form.engineHome.trim();
    if (form.python.trim()) spec.python = form.python.trim();
  }
  if (form.engine === "ray") spec.workers = numberOrText(form.workers);
  if (form.engine === "custom") spec.tasks = numberOrText(form.tasks);
  if (form.priority.trim() && form.priority.trim() !== "0") spec.priority = numberOrText(form.priority);
  if (form.retries.trim() && form.retries.trim() !== "0") spec.retries = numberOrText(form.retries);
  if (form.deadline.trim()) spec.deadlineSeconds = numberOrText(form.deadline);
  return {
    apiVersion: "carve.dev/v1",
    kind: "Job",
    metadata: form.name.trim() ? { name: form.name.trim() } : {},
    spec,
  };
}

export interface WorkerGroup {
  replicas: string;
  core: string;
  memory: string;
}
export interface RayClusterForm {
  name: string;
  queue: string;
  computeGroup: string;
  engineHome: string;
  workers: WorkerGroup[];
  parameters: string; // KEY=VALUE lines
  env: string;
}
export const new_raycluster: RayClusterForm = {
  name: "",
  queue: "",
  computeGroup: "default",
  engineHome: "",
  workers: [{ replicas: "2", core: "30", memory: "4096" }],
  parameters: "",
  env: "",
};

export function rayClusterDocument(form: RayClusterForm, gpu: QueueGpu): Json {
  const parameters = readPairs(form.parameters);
  const env = readPairs(form.env);
  return {
    apiVersion: "carve.dev/v1",
    kind: "RayCluster",
    metadata: { name: form.name.trim() },
    spec: {
      queue: form.queue,
      ...(form.computeGroup !== "default" ? { computeGroup: form.computeGroup } : {}),
      engineHome: form.engineHome.trim(),
      workers: form.workers.map((group) => ({
        replicas: numberOrText(group.replicas),
        ...(gpu === "mgpu"
          ? { mgpuCore: numberOrText(group.core), mgpuMemory: numberOrText(group.memory) }
          : {}),
      })),
      ...(Object.keys(parameters).length ? { parameters } : {}),
      ...(Object.keys(env).length ? { env } : {}),
    },
  };
}
