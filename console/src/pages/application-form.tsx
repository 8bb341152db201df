// Create and update of an application, in the order of Volcengine's console: template, application
// configuration, deployment environment and specification, inference service specification.
import { type FormEvent, useMemo, useState } from "react";
import { useLocation, useParams } from "wouter";
import { postDocument } from "../api/client";
import { Conflict, type Editable, saveObject } from "../api/edit";
import { useRights } from "../api/session";
import type { Application, Applied } from "../api/types";
import {
  type ApplicationForm,
  applicationDocument,
  type GpuType,
  new_application,
  policies,
  readApplication,
} from "../forms/application";
import { useLanguage, useT } from "../i18n";
import { useObject, useObjects } from "../live/objects";
import { Button, ErrorPanel, json, LinkButton, Page, Panel } from "../ui/basics";
import { useToast } from "../ui/dialog";
import {
  Checkbox,
  FieldErrors,
  OtherErrors,
  RadioGroup,
  SelectField,
  SwitchField,
  TextArea,
  TextField,
} from "../ui/fields";
import { ConflictPanel } from "./conflict";
import { targetOf } from "./edit-document";
import { NotFound } from "./not-found";
import { PreviewPanel, usePreview } from "./preview";

const shown_paths = [
  "metadata.name",
  "spec.run",
  "spec.port",
  "spec.pool",
  "spec.replicas",
  "spec.cpu",
  "spec.memory",
  "spec.gpu",
  "spec.elasticContainer",
  "gpu",
  "elasticContainer",
  "replicas",
  "run",
  "port",
  "pool",
  "cpu",
  "memory",
];

type Set = (change: Partial<ApplicationForm>) => void;

function Configuration({ form, set, isUpdate }: { form: ApplicationForm; set: Set; isUpdate: boolean }) {
  const t = useT();
  const { mayOperate } = useRights();
  return (
    <Panel title={t("Application configuration")}>
      <TextField
        label={t("Name")}
        value={form.name}
        onChange={(name) => set({ name })}
        isRequired
        isDisabled={isUpdate}
        paths={["metadata.name"]}
      />
      <SelectField
        label={t("Runs")}
        value={form.runs}
        onChange={(runs) => set({ runs: runs as "command" | "image" })}
        options={[
          { value: "command", label: t("Program of this machine") },
          { value: "image", label: t("Container image"), isDisabled: !mayOperate && form.runs !== "image" },
        ]}
      />
      {form.runs === "image" && (
        <TextField
          label={t("Image")}
          value={form.image}
          onChange={(image) => set({ image })}
          isRequired
          paths={["spec.run.image", "run.image"]}
        />
      )}
      <TextArea
        label={t("Command")}
        value={form.command}
        onChange={(command) => set({ command })}
        rows={3}
        isRequired={form.runs === "command"}
        paths={["spec.run.command", "run.command"]}
        help={t("a program and its arguments, quoted as in a shell; it listens on $PORT of 127.0.0.1")}
      />
      <div className="row-fields">
        <TextField
          label={t("Port")}
          kind="number"
          value={form.port}
          onChange={(port) => set({ port })}
          paths={["spec.port", "port"]}
        />
        <TextField
          label={t("Working directory")}
          value={form.workdir}
          onChange={(workdir) => set({ workdir })}
          paths={["spec.run.workdir", "run.workdir"]}
        />
      </div>
      <TextArea
        label={t("Environment variables")}
        value={form.env}
        onChange={(env) => set({ env })}
        rows={2}
        paths={["spec.run.env", "run.env"]}
        help={t("one NAME=VALUE per line")}
      />
    </Panel>
  );
}

function Environment({ form, set }: { form: ApplicationForm; set: Set }) {
  const t = useT();
  const pools = useObjects("Pool");
  return (
    <Panel title={t("Deployment environment and specification")}>
      <div className="row-fields">
        <SelectField
          label={t("Cluster")}
          value="local"
          onChange={() => {}}
          options={[{ value: "local", label: location.host }]}
          help={t("this controller")}
        />
        <SelectField
          label={t("Node pool")}
          value={form.pool}
          onChange={(pool) => set({ pool })}
          paths={["spec.pool", "pool"]}
          options={[
            { value: "", label: t("any node") },
            ...pools.map((p) => ({ value: p.metadata.name, label: `${p.metadata.name} (${p.spec.type})` })),
          ]}
        />
      </div>
    </Panel>
  );
}

function Specification({ form, set }: { form: ApplicationForm; set: Set }) {
  const { t, language } = useLanguage();
  const isShared = form.gpuType === "mGPU";
  const explanations = {
    "fixed-share": t("A fixed part: never more than its compute, also on an idle device."),
    "guaranteed-burst-share": t("A guaranteed part: at least its compute, and all that is idle."),
    "native-burst-share": t(
      "A weight: compute is divided by it among those that want it, without a guarantee.",
    ),
  };
  return (
    <Panel title={t("Inference service specification")}>
      <TextField
        label={t("Replicas")}
        kind="number"
        value={form.replicas}
        onChange={(replicas) => set({ replicas })}
        isRequired
        paths={["spec.replicas", "replicas"]}
      />
      <Checkbox
        label={t("Elastic container instance")}
        value={form.isElastic}
        onChange={(isElastic) => set({ isElastic })}
        paths={["spec.elasticContainer", "elasticContainer"]}
        help={t("Elastic containers cannot use a part of a device: leave it off with mGPU.")}
      />
      <div className="row-fields">
        <TextField
          label={t("CPU request")}
          value={form.cpuRequest}
          onChange={(cpuRequest) => set({ cpuRequest })}
          placeholder="500m"
          paths={["spec.cpu.request", "cpu.request"]}
        />
        <TextField
          label={t("CPU limit")}
          value={form.cpuLimit}
          onChange={(cpuLimit) => set({ cpuLimit })}
          placeholder="2"
          paths={["spec.cpu.limit", "cpu.limit"]}
        />
      </div>
      <div className="row-fields">
        <TextField
          label={t("Memory request")}
          value={form.memoryRequest}
          onChange={(memoryRequest) => set({ memoryRequest })}
          placeholder="4GiB"
          paths={["spec.memory.request", "memory.request"]}
        />
        <TextField
          label={t("Memory limit")}
          value={form.memoryLimit}
          onChange={(memoryLimit) => set({ memoryLimit })}
          placeholder="8GiB"
          paths={["spec.memory.limit", "memory.limit"]}
        />
      </div>
      <SelectField
        label={t("GPU resource type")}
        value={form.gpuType}
        onChange={(gpuType) => set({ gpuType: gpuType as GpuType })}
        paths={["spec.gpu.type", "gpu.type"]}
        options={[
          { value: "none", label: t("none") },
          { value: "mGPU", label: "mGPU" },
          { value: "GPU", label: t("GPU (whole devices)") },
        ]}
      />
      {isShared && (
        <>
          <SwitchField
            label={t("Multi-device sharing")}
            value={form.isMultiDevice}
            onChange={(isMultiDevice) => set({ isMultiDevice })}
            help={t(
              "Off: the replica gets a part of one device. On: equal parts of several devices; compute and memory are totals.",
            )}
          />
          <div className="row-fields">
            <TextField
              label={t("GPU compute")}
              kind="number"
              value={form.compute}
              onChange={(compute) => set({ compute })}
              paths={["spec.gpu.compute", "gpu.compute"]}
              help={t("0.01 to 0.99 of a device with at most 2 decimals, or a whole number")}
            />
            <TextField
              label={t("GPU memory (MiB)")}
              kind="number"
              value={form.memory}
              onChange={(memory) => set({ memory })}
              paths={["spec.gpu.memory", "gpu.memory"]}
              help={form.isMultiDevice ? t("more than 1024") : t("more than 256")}
            />
          </div>
          <RadioGroup
            label={t("Compute policy")}
            value={form.policy}
            onChange={(policy) => set({ policy })}
            options={[
              { value: "", label: t("the node's"), help: t("Without a label, nodes have fixed-share.") },
              ...policies.map(({ value, chinese }) => ({
                value,
                label: language === "zh-CN" ? `${chinese} (${value})` : `${value} (${chinese})`,
                help: explanations[value],
              })),
            ]}
          />
        </>
      )}
      {(form.gpuType === "GPU" || (isShared && form.isMultiDevice)) && (
        <TextField
          label={t("GPU devices")}
          kind="number"
          value={form.devices}
          onChange={(devices) => set({ devices })}
          paths={["spec.gpu.devices", "gpu.devices"]}
          help={isShared ? t("2 to 16") : t("1 without a number")}
        />
      )}
    </Panel>
  );
}

function Form({ application }: { application?: Application }) {
  const t = useT();
  const show = useToast();
  const [, navigate] = useLocation();
  const { mayChange } = useRights();
  const [step, setStep] = useState<"template" | "form">(application ? "form" : "template");
  const [opened, setOpened] = useState<Application | undefined>(application);
  const [form, setForm] = useState<ApplicationForm>(() =>
    application ? readApplication(application.metadata.name, application.spec as never) : new_application,
  );
  const [error, setError] = useState<unknown>(null);
  const [wasTried, setTried] = useState(false);
  const [conflict, setConflict] = useState<Application | null>(null);
  const document = useMemo(() => applicationDocument(form), [form]);
  const text = useMemo(() => json(document), [document]);
  const preview = usePreview(text, { isNew: !application, isEnabled: mayChange && step === "form" });
  const set: Set = (change) => {
    setError(null);
    setForm({ ...form, ...change });
  };
  if (step === "template")
    return (
      <Panel title={t("Template")}>
        <RadioGroup
          label={t("Template of the application")}
          value="custom"
          onChange={() => {}}
          options={[
            {
              value: "custom",
              label: t("Custom"),
              help: t("any program or image, with its own specification"),
            },
          ]}
        />
        <div className="form-foot">
          <Button kind="primary" onClick={() => setStep("form")}>
            {t("Next: application configuration")}
          </Button>
          <LinkButton href="/applications">{t("Cancel")}</LinkButton>
        </div>
      </Panel>
    );
  const shownError = error ?? (wasTried ? preview.error : null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    setError(null);
    try {
      if (opened) {
        const spec = document.spec as Record<string, unknown>;
        const body = {
          ...document,
          metadata: {
            name: opened.metadata.name,
            namespace: opened.metadata.namespace,
            labels: opened.metadata.labels,
            annotations: opened.metadata.annotations,
          },
          spec: {
            ...opened.spec,
            cpu: undefined,
            memory: undefined,
            gpu: undefined,
            port: undefined,
            ...spec,
            run: {
              ...opened.spec.run,
              image: undefined,
              env: {},
              workdir: "",
              command: [],
              ...(spec.run as object),
            },
          },
        };
        const saved = await saveObject<Editable>(
          "PUT",
          targetOf(opened),
          opened as unknown as Editable,
          body,
        );
        for (const warning of saved.warnings) show("warn", warning);
        show("ok", t("{name} changed", { name: form.name }));
      } else {
        const applied = await postDocument<{ items: Applied[] }>("/v1/documents", text, {
          dialect: "carve",
          create: true,
        });
        for (const item of applied.items) for (const warning of item.warnings) show("warn", warning);
        show("ok", t("{name} created", { name: form.name }));
      }
      navigate(`/applications/${encodeURIComponent(form.name.trim())}`);
    } catch (problem) {
      if (problem instanceof Conflict) setConflict(problem.current as Application);
      else setError(problem);
    }
  };
  return (
    <FieldErrors error={shownError}>
      <div className="with-aside">
        <form className="stack" onSubmit={(event) => void submit(event)} noValidate>
          {conflict && opened && (
            <Panel>
              <ConflictPanel
                loaded={opened as unknown as Editable}
                current={conflict as unknown as Editable}
                takeTheirs={() => {
                  setOpened(conflict);
                  setForm(readApplication(conflict.metadata.name, conflict.spec as never));
                  setConflict(null);
                }}
                keepMine={() => {
                  setOpened(conflict);
                  setConflict(null);
                }}
              />
            </Panel>
          )}
          <Configuration form={form} set={set} isUpdate={application !== undefined} />
          <Environment form={form} set={set} />
          <Specification form={form} set={set} />
          <OtherErrors known={shown_paths} />
          <ErrorPanel error={shownError} />
          <div className="form-foot">
            <Button kind="primary" type="submit" disabled={!mayChange || conflict !== null}>
              {t("OK")}
            </Button>
            <LinkButton
              href={
                application
                  ? `/applications/${encodeURIComponent(application.metadata.name)}`
                  : "/applications"
              }
            >
              {t("Cancel")}
            </LinkButton>
          </div>
        </form>
        <PreviewPanel preview={preview} text={text} cli="carve apply -f application.json" />
      </div>
    </FieldErrors>
  );
}

export function ApplicationFormPage() {
  const t = useT();
  const { name } = useParams<{ name?: string }>();
  const application = useObject("Application", decodeURIComponent(name ?? ""));
  if (name && !application) return <NotFound what={`application/${name}`} />;
  return (
    <Page
      title={application ? t("Update {name}", { name: application.metadata.name }) : t("Create application")}
      crumbs={[[t("Applications"), "/applications"]]}
      lead={t("AI application with mGPU")}
    >
      <Form key={name ?? ""} {...(application && { application })} />
    </Page>
  );
}
