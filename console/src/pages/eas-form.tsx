import { type FormEvent, useMemo, useState } from "react";
import { useLocation, useParams } from "wouter";
import { ApiError, path, postDocument } from "../api/client";
import { Conflict, type Editable, saveObject } from "../api/edit";
import { useRights } from "../api/session";
import type { Applied, Node, Pool, Service, Slicing } from "../api/types";
import {
  checkEas,
  type EasForm,
  easText,
  new_eas,
  type ResourceType,
  readEas,
  resource_types,
} from "../forms/eas";
import { useT } from "../i18n";
import { useNodes, useObject, useObjects } from "../live/objects";
import { Button, Empty, ErrorPanel, LinkButton, Page, Panel } from "../ui/basics";
import { useToast } from "../ui/dialog";
import { Checkbox, FieldErrors, OtherErrors, SelectField, TextArea, TextField } from "../ui/fields";
import { ConflictPanel } from "./conflict";
import { check_texts, GroupTable, useSlicing, WhyMissing } from "./eas-resources";
import { targetOf } from "./edit-document";
import { NotFound } from "./not-found";
import { PreviewPanel, usePreview } from "./preview";

const shown_paths = [
  "metadata.name",
  "metadata.instance",
  "metadata.resource",
  "metadata.gpu_memory",
  "metadata.gpu_core_percentage",
  "metadata.gpu",
  "metadata.cpu",
  "metadata.memory",
  "containers[0].command",
  "containers[0].image",
  "containers[0].port",
];

function Fields({
  form,
  set,
  pools,
  nodes,
  slicing,
  isUpdate,
}: {
  form: EasForm;
  set: (change: Partial<EasForm>) => void;
  pools: Pool[];
  nodes: Node[];
  slicing: Slicing | undefined;
  isUpdate: boolean;
}) {
  const t = useT();
  const { mayOperate } = useRights();
  const groups = pools.filter(
    (p) =>
      p.spec.type === form.resourceType ||
      (form.resourceType === "public" && !["eas", "lingjun"].includes(p.spec.type)),
  );
  const members = form.resource ? nodes.filter((n) => n.spec.pool === form.resource) : nodes;
  const unit = members.some((n) => n.spec.instanceType.startsWith("ml")) ? "GB" : "GiB";
  const canSlice = slicing?.available === true;
  const failed = slicing?.checks.find((check) => !check.ok);
  return (
    <>
      <Panel title={t("Basic information")}>
        <div className="row-fields">
          <SelectField
            label={t("Region")}
            value="local"
            onChange={() => {}}
            options={[{ value: "local", label: location.host }]}
            help={t("this controller")}
          />
          <SelectField
            label={t("Workspace")}
            value="default"
            onChange={() => {}}
            options={[{ value: "default", label: "default" }]}
            help={t("the namespace")}
          />
        </div>
        <TextField
          label={t("Service name")}
          value={form.name}
          onChange={(name) => set({ name })}
          isRequired
          isDisabled={isUpdate}
          paths={["metadata.name"]}
          help={t("lower-case letters, digits, - and _; at most 48 characters")}
        />
        <div className="field radios">
          <div className="row-fields">
            <label className="status">
              <input
                type="radio"
                name="runs"
                checked={form.runs === "command"}
                onChange={() => set({ runs: "command" })}
              />{" "}
              {t("Program")}
            </label>
            <label className="status">
              <input
                type="radio"
                name="runs"
                checked={form.runs === "image"}
                onChange={() => set({ runs: "image" })}
                disabled={!mayOperate && form.runs !== "image"}
              />{" "}
              {t("Image")}
            </label>
          </div>
        </div>
        {form.runs === "image" && (
          <TextField
            label={t("Image")}
            value={form.image}
            onChange={(image) => set({ image })}
            isRequired
            paths={["containers[0].image"]}
            help={t("only operators may start containers")}
          />
        )}
        <TextArea
          label={t("Command")}
          value={form.command}
          onChange={(command) => set({ command })}
          rows={3}
          isRequired={form.runs === "command"}
          paths={["containers[0].command"]}
          help={t("one line for /bin/sh -c; the program listens on $PORT of 127.0.0.1")}
        />
        <TextField
          label={t("Port")}
          kind="number"
          value={form.port}
          onChange={(port) => set({ port })}
          paths={["containers[0].port"]}
        />
      </Panel>
      <Panel title={t("Resource Information")}>
        <SelectField
          label={t("Resource Type")}
          value={form.resourceType}
          onChange={(type) =>
            set({
              resourceType: type as ResourceType,
              resource: pools.find((p) => p.spec.type === type)?.metadata.name ?? "",
              ...(type === "public" ? { isSliced: false } : {}),
            })
          }
          options={resource_types.map(({ type, name }) => ({ value: type, label: t(name) }))}
        />
        {form.resourceType !== "public" &&
          (groups.length === 0 && pools.length > 0 ? (
            <Empty
              title={t("No node pool has this type")}
              action={mayOperate && <LinkButton href="/pools/new">{t("Create node pool")}</LinkButton>}
            >
              {t("A resource group is a node pool. Create one, or choose another resource type.")}
            </Empty>
          ) : (
            <GroupTable
              pools={groups}
              nodes={nodes}
              value={form.resource}
              onChange={(resource) => set({ resource })}
              isDisabled={false}
            />
          ))}
        <Checkbox
          label={t("GPU Slicing")}
          value={form.isSliced && canSlice}
          isDisabled={!canSlice}
          onChange={(isSliced) => set({ isSliced })}
          help={
            canSlice ? (
              t("Several service instances share a GPU: each gets a part of its memory and computing power.")
            ) : (
              <>
                {failed ? `${t(check_texts[failed.name]!)}: ${failed.message}. ` : ""}
                <a href="#why">{t("Why is the GPU slicing option missing?")}</a>
              </>
            )
          }
        />
      </Panel>
      <Panel title={t("Deployment Resources")}>
        <TextField
          label={t("Instances")}
          kind="number"
          value={form.instances}
          onChange={(instances) => set({ instances })}
          isRequired
          paths={["metadata.instance"]}
        />
        {form.isSliced && canSlice ? (
          <div className="row-fields">
            <TextField
              label={unit === "GB" ? t("Single-GPU Memory (GB)") : t("Single-GPU Memory (GiB)")}
              kind="number"
              value={form.gpuMemory}
              onChange={(gpuMemory) => set({ gpuMemory })}
              isRequired
              paths={["metadata.gpu_memory"]}
              help={
                unit === "GB"
                  ? t("GB of 10^9 bytes on ml.* instance types, per service instance")
                  : t("GiB of 2^30 bytes, per service instance")
              }
            />
            <TextField
              label={t("Computing Power per GPU (%)")}
              kind="number"
              value={form.gpuCore}
              onChange={(gpuCore) => set({ gpuCore })}
              paths={["metadata.gpu_core_percentage"]}
              help={t("1 to 100, optional; no limit without it")}
            />
          </div>
        ) : (
          <TextField
            label={t("GPUs")}
            kind="number"
            value={form.gpu}
            onChange={(gpu) => set({ gpu })}
            paths={["metadata.gpu"]}
            help={t("whole devices per instance; empty for none")}
          />
        )}
        <div className="row-fields">
          <TextField
            label={t("vCPUs")}
            kind="number"
            value={form.cpu}
            onChange={(cpu) => set({ cpu })}
            paths={["metadata.cpu"]}
            help={t("optional")}
          />
          <TextField
            label={t("Memory (MB)")}
            kind="number"
            value={form.memory}
            onChange={(memory) => set({ memory })}
            paths={["metadata.memory"]}
            help={t("optional, of the host")}
          />
        </div>
        <OtherErrors known={shown_paths} />
      </Panel>
      <WhyMissing slicing={slicing} />
    </>
  );
}

interface Loaded {
  form: EasForm;
  base: Record<string, unknown>;
}

function load(service: Service | undefined, pools: Pool[]): Loaded | null {
  if (!service) {
    const first = pools.find((p) => p.spec.type === "eas") ?? pools.find((p) => p.spec.type === "lingjun");
    return {
      form: {
        ...new_eas,
        resource: first?.metadata.name ?? "",
        resourceType: (first?.spec.type as ResourceType | undefined) ?? "eas",
      },
      base: {},
    };
  }
  const read = readEas(service.spec.source.document);
  if (!read) return null;
  const type = pools.find((p) => p.metadata.name === read.form.resource)?.spec.type;
  return {
    base: read.base,
    form: {
      ...read.form,
      resourceType:
        type === "lingjun" || type === "eas" || !type
          ? ((type as ResourceType | undefined) ?? "eas")
          : "public",
    },
  };
}

function Form({ service }: { service?: Service }) {
  const t = useT();
  const show = useToast();
  const [, navigate] = useLocation();
  const pools = useObjects("Pool");
  const nodes = useNodes();
  const { mayChange } = useRights();
  const [opened, setOpened] = useState<Service | undefined>(service); // As the user opened it.
  const [loaded, setLoaded] = useState(() => load(service, pools));
  const [error, setError] = useState<unknown>(null);
  const [wasTried, setTried] = useState(false);
  const [conflict, setConflict] = useState<Service | null>(null);
  const [isBusy, setBusy] = useState(false);
  const form = loaded?.form ?? new_eas;
  const base = loaded?.base ?? {};
  const slicing = useSlicing(form, pools, nodes);
  const effective = useMemo(
    () => ({ ...form, isSliced: form.isSliced && slicing?.available === true }),
    [form, slicing?.available],
  );
  const text = useMemo(() => easText(effective, base), [effective, base]);
  const preview = usePreview(text, { dialect: "eas", isNew: !service, isEnabled: mayChange });
  if (!loaded)
    return (
      <Panel>
        <Empty title={t("This service has no JSON document of PAI-EAS")}>
          {t("Use Edit the spec on its page.")}
        </Empty>
      </Panel>
    );
  const set = (change: Partial<EasForm>) => {
    setError(null);
    setLoaded({ base, form: { ...form, ...change } });
  };
  const missing = checkEas(effective);
  const shownError =
    error ??
    (wasTried
      ? missing.length
        ? new ApiError({
            type: "carve:invalid",
            title: "",
            status: 422,
            detail: missing[0]!.message,
            reasons: [],
            errors: missing.map((m) => ({ ...m, value: "" })),
          })
        : preview.error
      : null);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    setError(null);
    if (missing.length) return;
    setBusy(true);
    try {
      if (opened) {
        await saveObject(
          "POST",
          targetOf(opened),
          opened,
          { changes: [], document: text },
          {},
          path`/v1/services/${opened.metadata.name}/modify`,
        );
        show("ok", t("{name} changed", { name: form.name }));
        navigate(`/services/${encodeURIComponent(opened.metadata.name)}`);
      } else {
        const applied = await postDocument<{ items: Applied[] }>("/v1/documents", text, {
          dialect: "eas",
          create: true,
        });
        show("ok", t("{name} created", { name: form.name }));
        navigate(`/services/${encodeURIComponent(applied.items[0]!.name)}`);
      }
    } catch (problem) {
      if (problem instanceof Conflict) setConflict(problem.current as Service);
      else setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <FieldErrors error={shownError}>
      <div className="with-aside">
        <form className="stack" onSubmit={(event) => void submit(event)} noValidate>
          {conflict && opened && (
            <Panel>
              <ConflictPanel
                loaded={opened as Editable}
                current={conflict as Editable}
                takeTheirs={() => {
                  setOpened(conflict);
                  setLoaded(load(conflict, pools));
                  setConflict(null);
                }}
                keepMine={() => {
                  setOpened(conflict);
                  setConflict(null);
                }}
              />
            </Panel>
          )}
          <Fields
            form={form}
            set={set}
            pools={pools}
            nodes={nodes}
            slicing={slicing}
            isUpdate={service !== undefined}
          />
          {shownError !== null && shownError !== undefined && <ErrorPanel error={shownError} />}
          <div className="form-foot">
            <Button kind="primary" type="submit" disabled={isBusy || !mayChange || conflict !== null}>
              {service ? t("Update") : t("Deploy")}
            </Button>
            <LinkButton
              href={service ? `/services/${encodeURIComponent(service.metadata.name)}` : "/services"}
            >
              {t("Cancel")}
            </LinkButton>
          </div>
        </form>
        <PreviewPanel
          preview={preview}
          text={text}
          cli={service ? `carve eas modify ${form.name} -s service.json` : "carve eas create service.json"}
        />
      </div>
    </FieldErrors>
  );
}

export function EasFormPage() {
  const t = useT();
  const { name } = useParams<{ name?: string }>();
  const service = useObject("Service", decodeURIComponent(name ?? ""));
  if (name && !service) return <NotFound what={`service/${name}`} />;
  return (
    <Page
      title={
        service
          ? t("Update {name}", {
              name: service.metadata.annotations["eas.carve.dev/name"] ?? service.metadata.name,
            })
          : t("Create service")
      }
      crumbs={[[t("Services"), "/services"]]}
      lead={t("Elastic Algorithm Service (EAS)")}
    >
      <Form key={name ?? ""} {...(service && { service })} />
    </Page>
  );
}
