import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { applicationDocument, new_application, readApplication } from "./application";
import { checkEas, easDocument, easText, new_eas, readEas } from "./eas";
import { gpuParameters, jobDocument, new_job, new_raycluster, rayClusterDocument } from "./job";
import { joinCommand, numberOrText, readPairs, splitCommand } from "./number";
import { new_pool, poolDocument, readPool, readTaints } from "./pool";

describe("PAI-EAS form", () => {
  const form = {
    ...new_eas,
    name: "demo_eas",
    instances: "2",
    gpuMemory: "20",
    gpuCore: "5",
    command: "serve",
    port: "8000",
  };

  it("writes the document of the example, field by field and in its order", () => {
    expect(easText(form)).toBe(
      '{\n  "metadata": {\n    "name": "demo_eas",\n    "instance": 2,\n    "gpu_memory": 20,\n    "gpu_core_percentage": 5\n  },\n  "containers": [\n    {\n      "command": "serve",\n      "port": 8000\n    }\n  ]\n}',
    );
  });
  it("writes examples/eas.json byte for byte", () => {
    const example = readFileSync(new URL("../../../examples/eas.json", import.meta.url), "utf8").trimEnd();
    const read = readEas(example)!;
    expect(easText({ ...read.form, resourceType: "eas" })).toBe(example);
  });
  it("reads what it writes", () => {
    const read = readEas(easText(form));
    expect({ ...read?.form, resourceType: "eas" }).toEqual(form);
  });
  it("leaves the slice fields out without slicing, and the device count with it", () => {
    expect(easDocument({ ...form, isSliced: false, gpu: "1" }).metadata).toEqual({
      name: "demo_eas",
      instance: 2,
      gpu: 1,
    });
    expect(easDocument({ ...form, gpu: "1" }).metadata).not.toHaveProperty("gpu");
  });
  it("keeps fields that it does not show", () => {
    const base = {
      metadata: { name: "demo_eas", rpc: { keepalive: 5 }, gpu_memory: 1 },
      storage: [1],
      containers: [{ command: "old", env: [] }, { command: "second" }],
    };
    expect(easDocument(form, base)).toEqual({
      metadata: {
        name: "demo_eas",
        instance: 2,
        rpc: { keepalive: 5 },
        gpu_memory: 20,
        gpu_core_percentage: 5,
      },
      storage: [1],
      containers: [{ command: "serve", env: [], port: 8000 }, { command: "second" }],
    });
  });
  it("reads the flat keys of PAI's SDK and writes them into metadata", () => {
    const read = readEas('{"metadata.name": "a", "metadata.gpu_memory": "7", "containers": []}')!;
    expect(read.form.name).toBe("a");
    expect(read.form.gpuMemory).toBe("7");
    expect(easDocument({ ...read.form, resourceType: "eas" }, read.base)).not.toHaveProperty(
      "metadata.name.gpu_memory",
    );
    expect(Object.keys(easDocument({ ...read.form, resourceType: "eas" }, read.base))).toEqual([
      "metadata",
      "containers",
    ]);
  });
  it("passes wrong numbers on, so that the controller's message appears at the field", () => {
    expect(easDocument({ ...form, gpuMemory: "abc", gpuCore: "5.5" }).metadata).toMatchObject({
      gpu_memory: "abc",
      gpu_core_percentage: 5.5,
    });
  });
  it("requires memory only with slicing", () => {
    expect(checkEas({ ...form, gpuMemory: " " })).toHaveLength(1);
    expect(checkEas({ ...form, gpuMemory: "", isSliced: false })).toEqual([]);
  });
  it("rejects text that is no JSON object", () => {
    expect(readEas("metadata: {}")).toBeNull();
  });
});

describe("application form", () => {
  const form = {
    ...new_application,
    name: "chat",
    replicas: "2",
    command: "python3 -c 'print(1)'",
    policy: "fixed-share",
  };
  it("writes the fields of the form and no others", () => {
    expect(applicationDocument(form)).toEqual({
      apiVersion: "carve.dev/v1",
      kind: "Application",
      metadata: { name: "chat" },
      spec: {
        replicas: 2,
        gpu: { type: "mGPU", compute: "0.3", memory: "4096", policy: "fixed-share" },
        run: { command: ["python3", "-c", "print(1)"] },
        port: 8000,
      },
    });
  });
  it("sends the number of devices only where it has a meaning", () => {
    const gpu = (change: object) =>
      (applicationDocument({ ...form, devices: "2", ...change }).spec as { gpu?: object }).gpu;
    expect(gpu({})).not.toHaveProperty("devices");
    expect(gpu({ isMultiDevice: true })).toMatchObject({ multiDevice: true, devices: 2 });
    expect(gpu({ gpuType: "GPU" })).toEqual({ type: "GPU", devices: 2 });
    expect(gpu({ gpuType: "none" })).toBeUndefined();
  });
  it("reads what it writes", () => {
    const full = {
      ...form,
      isMultiDevice: true,
      devices: "2",
      cpuLimit: "2",
      memoryRequest: "1GiB",
      env: "A=1\nB=x=y",
      workdir: "/tmp",
      pool: "a10",
    };
    const document = applicationDocument(full) as { spec: Record<string, unknown> };
    expect(readApplication("chat", document.spec)).toEqual(full);
  });
});

describe("job form", () => {
  it("writes the parameters of each engine", () => {
    expect(gpuParameters(new_job, "mgpu")).toEqual({
      "serverless.custom.job.gpu.enabled": "true",
      "serverless.custom.job.task.gpus": "1",
      "emr.serverless.mgpu.core": "30",
      "emr.serverless.mgpu.memory": "4096",
    });
    expect(gpuParameters({ ...new_job, engine: "ray", devices: "2" }, "gpu")).toEqual({
      "serverless.ray.worker.gpu.vendor": "nvidia.com",
      "serverless.ray.worker.gpu.amount": "2",
    });
    const spark = gpuParameters({ ...new_job, engine: "spark" }, "mgpu");
    expect(Object.keys(spark)).toHaveLength(11);
    expect(spark["spark.task.resource.gpu.amount"]).toBe("0.1");
    expect(spark["spark.executor.resource.gpu.amount"]).toBe("1");
    expect(gpuParameters(new_job, "none")).toEqual({});
  });
  it("lets parameters from a text replace those of the fields", () => {
    const spec = jobDocument(
      { ...new_job, queue: "train", command: "sleep 1", parameters: { "emr.serverless.mgpu.core": "50" } },
      "mgpu",
    ).spec as { parameters: Record<string, string>; tasks: number };
    expect(spec.parameters["emr.serverless.mgpu.core"]).toBe("50");
    expect(spec.tasks).toBe(1);
  });
  it("writes worker groups of a Ray cluster", () => {
    const form = { ...new_raycluster, name: "shared", queue: "train", engineHome: "/opt/ray/bin" };
    expect(rayClusterDocument(form, "mgpu").spec).toEqual({
      queue: "train",
      engineHome: "/opt/ray/bin",
      workers: [{ replicas: 2, mgpuCore: 30, mgpuMemory: 4096 }],
    });
    expect(rayClusterDocument(form, "gpu").spec).toMatchObject({ workers: [{ replicas: 2 }] });
  });
});

describe("pool form", () => {
  it("reads what it writes", () => {
    const form = {
      ...new_pool,
      name: "a10",
      labels: "carve.dev/placement=spread\nzone=a",
      taints: "team=vision:NoSchedule\nx=:NoExecute",
      labelSync: true,
    };
    expect(readPool("a10", poolDocument(form).spec)).toEqual(form);
  });
  it("keeps a taint without an effect for the controller to reject", () => {
    expect(readTaints("team=vision")).toEqual([{ key: "team", value: "vision", effect: "" }]);
  });
});

describe("texts", () => {
  it("splits a command as a shell does", () => {
    for (const words of [
      ["sh", "-c", 'echo "$PORT" && exec x'],
      ["a b", "it's", ""],
      ["x=1", "--y", "z\\n"],
    ])
      expect(splitCommand(joinCommand(words))).toEqual(words);
    expect(splitCommand(`python3 -c "print(\\"a\\")"  x\\ y`)).toEqual([
      "python3",
      "-c",
      'print("a")',
      "x y",
    ]);
  });
  it("reads pairs whose values contain the equals sign", () => {
    expect(readPairs("A=1=2\n\nB")).toEqual({ A: "1=2", B: "" });
  });
  it("leaves what is no number as text", () => {
    expect([
      numberOrText(" 20 "),
      numberOrText("-1"),
      numberOrText("1.5"),
      numberOrText("4GB"),
      numberOrText(""),
    ]).toEqual([20, -1, 1.5, "4GB", ""]);
  });
});
