// The form of a PAI-EAS service and its JSON document. An update keeps the fields of the document that the form
// does not have.
import { numberOrText, textOf } from "./number";

export type ResourceType = "eas" | "lingjun" | "public";
export const resource_types: {
  type: ResourceType;
  name: "EAS Resource Group" | "Resource Quota" | "Public Resources";
}[] = [
  { type: "eas", name: "EAS Resource Group" },
  { type: "lingjun", name: "Resource Quota" },
  { type: "public", name: "Public Resources" },
];

export interface EasForm {
  name: string;
  instances: string;
  resourceType: ResourceType;
  resource: string; // Name of the resource group, which is a node pool; empty if there are no pools.
  isSliced: boolean;
  gpuMemory: string;
  gpuCore: string;
  gpu: string; // Whole devices, if it is not sliced.
  cpu: string;
  memory: string; // MB of the host.
  runs: "command" | "image";
  command: string;
  image: string;
  port: string;
}

export const new_eas: EasForm = {
  name: "",
  instances: "1",
  resourceType: "eas",
  resource: "",
  isSliced: true,
  gpuMemory: "",
  gpuCore: "",
  gpu: "",
  cpu: "",
  memory: "",
  runs: "command",
  command: "",
  image: "",
  port: "8000",
};

type Json = Record<string, unknown>;
const asObject = (value: unknown): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};

// Sets the field, or removes it if the text is empty.
function put(object: Json, key: string, text: string, read: (text: string) => unknown = (t) => t) {
  if (text.trim() === "") delete object[key];
  else object[key] = read(text);
}

// Moves flat keys, as PAI's SDK writes them ("metadata.gpu_memory"), into `metadata`.
function nested(document: Json): Json {
  const out: Json = {};
  const metadata = { ...asObject(document.metadata) };
  for (const [key, value] of Object.entries(document))
    if (key.startsWith("metadata.")) metadata[key.slice("metadata.".length)] = value;
    else out[key] = value;
  return { ...out, metadata };
}

export function easDocument(form: EasForm, base: Json = {}): Json {
  const document = nested(base);
  const metadata = asObject(document.metadata);
  const out: Json = { name: form.name.trim(), instance: numberOrText(form.instances) };
  for (const [key, value] of Object.entries(metadata)) if (!(key in out)) out[key] = value;
  put(out, "resource", form.resource);
  put(out, "gpu_memory", form.isSliced ? form.gpuMemory : "", numberOrText);
  put(out, "gpu_core_percentage", form.isSliced ? form.gpuCore : "", numberOrText);
  put(out, "gpu", form.isSliced ? "" : form.gpu, numberOrText);
  put(out, "cpu", form.cpu, numberOrText);
  put(out, "memory", form.memory, numberOrText);
  const containers = Array.isArray(document.containers) ? [...(document.containers as unknown[])] : [];
  const container = { ...asObject(containers[0]) };
  put(container, "image", form.runs === "image" ? form.image : "");
  put(container, "command", form.command);
  put(container, "port", form.port, numberOrText);
  containers[0] = container;
  const { metadata: _, containers: __, ...rest } = document;
  return { metadata: out, ...rest, containers };
}

// The text that is sent and stored.
export const easText = (form: EasForm, base: Json = {}) => JSON.stringify(easDocument(form, base), null, 2);

// Reads a stored document. Returns null if it is not a JSON object.
export function readEas(text: string): { form: Omit<EasForm, "resourceType">; base: Json } | null {
  let base: Json;
  try {
    base = asObject(JSON.parse(text));
  } catch {
    return null;
  }
  const metadata = asObject(nested(base).metadata);
  const container = asObject(Array.isArray(base.containers) ? base.containers[0] : {});
  const gpu = textOf(metadata.gpu);
  return {
    base,
    form: {
      name: textOf(metadata.name),
      instances: textOf(metadata.instance ?? 1),
      resource: textOf(metadata.resource),
      isSliced: metadata.gpu_memory !== undefined && (gpu === "" || gpu === "0"),
      gpuMemory: textOf(metadata.gpu_memory),
      gpuCore: textOf(metadata.gpu_core_percentage),
      gpu: gpu === "0" ? "" : gpu,
      cpu: textOf(metadata.cpu),
      memory: textOf(metadata.memory),
      runs: container.image ? "image" : "command",
      command: textOf(container.command),
      image: textOf(container.image),
      port: textOf(container.port),
    },
  };
}

// Errors that the API cannot report: the document without the field is valid and means something else.
export function checkEas(form: EasForm): { field: string; message: string }[] {
  if (form.isSliced && form.gpuMemory.trim() === "")
    return [
      {
        field: "metadata.gpu_memory",
        message: "is required with GPU slicing: memory of each service instance",
      },
    ];
  return [];
}
