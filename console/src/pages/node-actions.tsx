import { useState } from "react";
import { call, path, post } from "../api/client";
import { useRights } from "../api/session";
import type { Node } from "../api/types";
import { useT } from "../i18n";
import { useObjects } from "../live/objects";
import { Banner, Button } from "../ui/basics";
import { ActionMenu, ConfirmDialog, useAction } from "../ui/dialog";
import { Checkbox, SelectField } from "../ui/fields";

function PoolDialog({ node, onClose }: { node: Node; onClose: () => void }) {
  const t = useT();
  const pools = useObjects("Pool");
  const [pool, setPool] = useState(node.spec.pool);
  return (
    <ConfirmDialog
      title={t("Node pool of {name}", { name: node.metadata.name })}
      verb={t("Save")}
      act={() => call("PATCH", path`/v1/nodes/${node.metadata.name}`, { body: { spec: { pool } } })}
      onClose={onClose}
    >
      <SelectField
        label={t("Node pool")}
        value={pool}
        onChange={setPool}
        options={[
          { value: "", label: t("none") },
          ...pools.map((p) => ({ value: p.metadata.name, label: p.metadata.name })),
        ]}
        help={t("The node gets the labels and taints of the pool.")}
      />
    </ConfirmDialog>
  );
}

type Open = "restart" | "drain" | "stop" | "pool" | "end" | null;
export function NodeActions({ node }: { node: Node }) {
  const t = useT();
  const { mayOperate } = useRights();
  const { run } = useAction();
  const [open, setOpen] = useState<Open>(null);
  const [isForced, setForced] = useState(false);
  const name = node.metadata.name;
  const isDisabled = !mayOperate;
  const close = () => {
    setOpen(null);
    setForced(false);
  };
  const unmanaged = node.status.sliceList.filter((s) => !s.workload);
  const sliceItems = (slices: Node["status"]["sliceList"]) => (
    <ul>
      {slices.map((s) => (
        <li key={s.name}>
          {s.name}
          {s.workload && <span className="muted"> ({`${s.kind}/${s.workload}`})</span>}
        </li>
      ))}
    </ul>
  );
  return (
    <>
      {node.spec.schedulable ? (
        <Button
          disabled={isDisabled}
          onClick={() =>
            void run(
              () => call("PATCH", path`/v1/nodes/${name}`, { body: { spec: { schedulable: false } } }),
              t("{name} gets no new slices", { name }),
            )
          }
        >
          {t("Cordon")}
        </Button>
      ) : (
        <Button
          disabled={isDisabled}
          onClick={() =>
            void run(
              () => call("PATCH", path`/v1/nodes/${name}`, { body: { spec: { schedulable: true } } }),
              t("{name} gets new slices again", { name }),
            )
          }
        >
          {t("Uncordon")}
        </Button>
      )}
      <Button disabled={isDisabled} onClick={() => setOpen("drain")}>
        {t("Drain")}
      </Button>
      <Button disabled={isDisabled} onClick={() => setOpen("restart")}>
        {t("Restart")}
      </Button>
      <ActionMenu
        label={t("More")}
        actions={[
          { id: "pool", label: t("Change node pool"), isDisabled, act: () => setOpen("pool") },
          node.spec.stopped
            ? {
                id: "start",
                label: t("Start"),
                isDisabled,
                act: () => void run(() => post(path`/v1/nodes/${name}/start`), t("{name} starts", { name })),
              }
            : { id: "stop", label: t("Stop"), isDisabled, act: () => setOpen("stop") },
          { id: "end", label: t("End all slices"), isDisabled, act: () => setOpen("end") },
        ]}
      />
      {open === "drain" && (
        <ConfirmDialog
          title={t("Drain {name}?", { name })}
          verb={t("Drain")}
          act={() => post(path`/v1/nodes/${name}/drain`)}
          onClose={close}
        >
          <p>
            {t(
              "The node gets no new slices, and the replicas of services move to other nodes when a new replica is ready there.",
            )}
          </p>
          {unmanaged.length > 0 && (
            <Banner tone="warn">
              {t("These slices belong to no service or job and stay:")}{" "}
              {unmanaged.map((s) => s.name).join(", ")}
            </Banner>
          )}
        </ConfirmDialog>
      )}
      {open === "restart" && (
        <ConfirmDialog
          title={t("Restart {name}?", { name })}
          verb={t("Restart")}
          isDangerous={isForced}
          act={() => post(path`/v1/nodes/${name}/restart`, {}, { force: isForced })}
          onClose={close}
        >
          <p>
            {t(
              "The desired settings take effect when the running slices have ended. Until then the node rejects new slices.",
            )}
          </p>
          {node.status.sliceList.length > 0 && (
            <>
              <p>{t("Slices that block the restart:")}</p>
              {sliceItems(node.status.sliceList)}
              <Checkbox label={t("End these slices now")} value={isForced} onChange={setForced} />
            </>
          )}
        </ConfirmDialog>
      )}
      {open === "stop" && (
        <ConfirmDialog
          title={t("Stop {name}?", { name })}
          verb={t("Stop")}
          isDangerous
          act={() => post(path`/v1/nodes/${name}/stop`)}
          onClose={close}
        >
          <p>{t("The node rejects new slices and is shown as Stopped. Running slices continue.")}</p>
        </ConfirmDialog>
      )}
      {open === "end" && (
        <ConfirmDialog
          title={t("End all slices of {name}?", { name })}
          verb={t("End {n} slices", { n: node.status.sliceList.length })}
          isDangerous
          act={() => post(path`/v1/nodes/${name}/end-slices`)}
          onClose={close}
        >
          {sliceItems(node.status.sliceList)}
        </ConfirmDialog>
      )}
      {open === "pool" && <PoolDialog node={node} onClose={close} />}
    </>
  );
}
