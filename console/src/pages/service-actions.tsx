import { useState } from "react";
import { useLocation } from "wouter";
import { call, post } from "../api/client";
import { useRights } from "../api/session";
import type { Workload } from "../api/types";
import { useT } from "../i18n";
import { Button } from "../ui/basics";
import { ActionMenu, ConfirmDialog, useAction } from "../ui/dialog";
import { SelectField, TextField } from "../ui/fields";
import { EditDialog, targetOf } from "./edit-document";
import { folder, hrefOf, shownName, verbTarget, type WorkloadKind } from "./services";

function ScaleDialog({ workload, onClose }: { workload: Workload; onClose: () => void }) {
  const t = useT();
  const [replicas, setReplicas] = useState(String(workload.spec.replicas));
  return (
    <ConfirmDialog
      title={t("Scale {name}", { name: shownName(workload) })}
      verb={t("Scale")}
      act={() => call("PATCH", targetOf(workload), { body: { spec: { replicas: Number(replicas) } } })}
      onClose={onClose}
    >
      <TextField
        label={t("Replicas")}
        kind="number"
        value={replicas}
        onChange={setReplicas}
        help={t("0 to 64; now {n}", { n: workload.spec.replicas })}
      />
    </ConfirmDialog>
  );
}

function AutoscaleDialog({ workload, onClose }: { workload: Workload; onClose: () => void }) {
  const t = useT();
  const now = "autoscale" in workload.spec ? workload.spec.autoscale : undefined;
  const [metric, setMetric] = useState<string>(now?.metric ?? "off");
  const [min, setMin] = useState(String(now?.min ?? 1));
  const [max, setMax] = useState(String(now?.max ?? 2));
  const [target, setTarget] = useState(String(now?.target ?? 10));
  const autoscale =
    metric === "off" ? null : { min: Number(min), max: Number(max), metric, target: Number(target) };
  return (
    <ConfirmDialog
      title={t("Autoscale {name}", { name: shownName(workload) })}
      verb={t("Save")}
      act={() => call("PATCH", targetOf(workload), { body: { spec: { autoscale } } })}
      onClose={onClose}
    >
      <SelectField
        label={t("The number of replicas follows")}
        value={metric}
        onChange={setMetric}
        options={[
          { value: "off", label: t("nothing: autoscaling is off") },
          { value: "qps", label: t("requests per second") },
          { value: "concurrency", label: t("simultaneous requests") },
          { value: "gpuUtilization", label: t("percent of its share that a replica uses") },
        ]}
      />
      {metric !== "off" && (
        <div className="row-fields">
          <TextField label={t("Fewest replicas")} kind="number" value={min} onChange={setMin} />
          <TextField label={t("Most replicas")} kind="number" value={max} onChange={setMax} />
          <TextField label={t("Target per replica")} kind="number" value={target} onChange={setTarget} />
        </div>
      )}
    </ConfirmDialog>
  );
}

export function Actions({ workload }: { workload: Workload }) {
  const t = useT();
  const [, navigate] = useLocation();
  const { mayChangeOf } = useRights();
  const { run } = useAction();
  const [open, setOpen] = useState<"scale" | "autoscale" | "stop" | "restart" | "delete" | "edit" | null>(
    null,
  );
  const isDisabled = !mayChangeOf(workload.metadata.account);
  const isService = workload.kind === "Service";
  const isEas = isService && "source" in workload.spec && workload.spec.source?.dialect === "eas";
  const name = shownName(workload);
  const close = () => setOpen(null);
  return (
    <>
      <Button
        kind="primary"
        disabled={isDisabled}
        onClick={() => (isEas || !isService ? navigate(`${hrefOf(workload)}/edit`) : setOpen("edit"))}
      >
        {t("Update")}
      </Button>
      <Button disabled={isDisabled} onClick={() => setOpen("scale")}>
        {t("Scale")}
      </Button>
      {workload.spec.stopped ? (
        <Button
          disabled={isDisabled}
          onClick={() => void run(() => post(verbTarget(workload, "start")), t("{name} starts", { name }))}
        >
          {t("Start")}
        </Button>
      ) : (
        <Button disabled={isDisabled} onClick={() => setOpen("stop")}>
          {t("Stop")}
        </Button>
      )}
      <ActionMenu
        label={t("More")}
        actions={[
          { id: "restart", label: t("Restart"), isDisabled, act: () => setOpen("restart") },
          ...(isService
            ? [{ id: "autoscale", label: t("Autoscale"), isDisabled, act: () => setOpen("autoscale") }]
            : []),
          { id: "edit", label: t("Edit the spec"), isDisabled, act: () => setOpen("edit") },
          { id: "delete", label: t("Delete"), isDisabled, act: () => setOpen("delete") },
        ]}
      />
      {open === "scale" && <ScaleDialog workload={workload} onClose={close} />}
      {open === "autoscale" && <AutoscaleDialog workload={workload} onClose={close} />}
      {open === "edit" && <EditDialog object={workload} onClose={close} />}
      {open === "stop" && (
        <ConfirmDialog
          title={t("Stop {name}?", { name })}
          verb={t("Stop")}
          isDangerous
          act={() => post(verbTarget(workload, "stop"))}
          onClose={close}
        >
          <p>
            {t("Its {n} replicas end and release their slices. The object stays and can be started again.", {
              n: workload.status.replicas,
            })}
          </p>
        </ConfirmDialog>
      )}
      {open === "restart" && (
        <ConfirmDialog
          title={t("Restart {name}?", { name })}
          verb={t("Restart")}
          act={() => post(verbTarget(workload, "restart"))}
          onClose={close}
        >
          <p>{t("A new revision replaces every replica, one by one.")}</p>
        </ConfirmDialog>
      )}
      {open === "delete" && (
        <ConfirmDialog
          title={t("Delete {name}?", { name })}
          verb={t("Delete")}
          isDangerous
          act={async () => {
            await call("DELETE", targetOf(workload));
            navigate(folder(workload.kind as WorkloadKind));
          }}
          onClose={close}
        >
          <p>
            {t("Its {n} replicas end, and its revisions and logs are removed.", {
              n: workload.status.replicas,
            })}
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
