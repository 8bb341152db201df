import { useState } from "react";
import { call, path } from "../api/client";
import { useRights } from "../api/session";
import type { Node } from "../api/types";
import { useT } from "../i18n";
import { Banner, Button, Facts, Panel, Status, Tag } from "../ui/basics";
import { ConfirmDialog } from "../ui/dialog";
import { Checkbox, SelectField, TextField } from "../ui/fields";
import { SliceLink } from "./amounts";
import type { SettingValue } from "./nodes";

// The system labels and their values (docs/pools.md).
const system_labels: Record<string, string[]> = {
  "carve.dev/compute-policy": ["fixed-share", "guaranteed-burst-share", "native-burst-share"],
  "carve.dev/mode": ["memory-and-compute", "memory", "none", "exclusive"],
  "carve.dev/placement": ["binpack", "spread"],
  "carve.dev/memory-unit": ["1GiB", "128MiB"],
};

function AddLabel({ node, onClose }: { node: Node; onClose: () => void }) {
  const t = useT();
  const [kind, setKind] = useState("other");
  const [key, setKey] = useState("");
  const [value, setValue] = useState("");
  const [isWhenFree, setWhenFree] = useState(false);
  const values = system_labels[kind];
  const name = kind === "other" ? key.trim() : kind;
  return (
    <ConfirmDialog
      title={t("Add label to {name}", { name: node.metadata.name })}
      verb={t("Add label")}
      act={() =>
        call("PATCH", path`/v1/nodes/${node.metadata.name}`, {
          body: { metadata: { labels: { [name]: value } } },
          query: { whenFree: isWhenFree },
        })
      }
      onClose={onClose}
    >
      <SelectField
        label={t("Label")}
        value={kind}
        onChange={(next) => {
          setKind(next);
          setValue(system_labels[next]?.[0] ?? "");
        }}
        options={[
          { value: "other", label: t("another key") },
          ...Object.keys(system_labels).map((label) => ({
            value: label,
            label: `${label} (${t("system label")})`,
          })),
        ]}
      />
      {kind === "other" && <TextField label={t("Key")} value={key} onChange={setKey} isRequired />}
      {values ? (
        <SelectField
          label={t("Value")}
          value={value}
          onChange={setValue}
          options={values.map((v) => ({ value: v, label: v }))}
        />
      ) : (
        <TextField label={t("Value")} value={value} onChange={setValue} />
      )}
      {values && (
        <p className="help">
          {t(
            "The value of a system label cannot be changed while the node has it: remove the label, restart the node, and add it again, or change it through its node pool.",
          )}
        </p>
      )}
      {kind === "carve.dev/memory-unit" && (
        <Checkbox
          label={t("When free: take effect when no slice was requested in units")}
          value={isWhenFree}
          onChange={setWhenFree}
        />
      )}
    </ConfirmDialog>
  );
}

export function LabelsPanel({ node }: { node: Node }) {
  const t = useT();
  const { mayOperate } = useRights();
  const [isAdding, setAdding] = useState(false);
  const [removed, setRemoved] = useState<string | null>(null);
  const entries = Object.entries(node.metadata.labels);
  return (
    <Panel
      title={t("Labels")}
      actions={
        <Button disabled={!mayOperate} onClick={() => setAdding(true)}>
          {t("Add label")}
        </Button>
      }
    >
      {entries.length === 0 ? (
        <p className="muted">{t("No labels. Without a system label the node has the default value.")}</p>
      ) : (
        <table>
          <tbody>
            {entries.map(([key, value]) => (
              <tr key={key}>
                <th scope="row" className="mono">
                  {key}
                </th>
                <td className="mono">{value}</td>
                <td className="numeric">
                  <Button
                    kind="quiet"
                    disabled={!mayOperate}
                    onClick={() => setRemoved(key)}
                    aria-label={t("Remove label {key}", { key })}
                  >
                    {t("Remove")}
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {node.status.removedLabels.length > 0 && (
        <Banner tone="warn">
          {t("Removed labels wait for a restart of the node: {labels}", {
            labels: node.status.removedLabels.join(", "),
          })}
        </Banner>
      )}
      {node.status.taints.length > 0 && (
        <p>
          {t("Taints")}:{" "}
          {node.status.taints.map((taint) => (
            <Tag key={taint}>{taint}</Tag>
          ))}
        </p>
      )}
      {isAdding && <AddLabel node={node} onClose={() => setAdding(false)} />}
      {removed && (
        <ConfirmDialog
          title={t("Remove label {key}?", { key: removed })}
          verb={t("Remove")}
          isDangerous
          act={() =>
            call("PATCH", path`/v1/nodes/${node.metadata.name}`, {
              body: { metadata: { labels: { [removed]: null } } },
            })
          }
          onClose={() => setRemoved(null)}
        >
          <p>
            {removed in system_labels
              ? t(
                  "A system label takes effect until the node is restarted. Then the node has the default value.",
                )
              : t("The label is removed from node {name}.", { name: node.metadata.name })}
          </p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}

export function SettingsPanel({ node }: { node: Node }) {
  const t = useT();
  const settings: [string, SettingValue][] = [
    [t("Compute policy"), node.status.policy],
    [t("Isolation mode"), node.status.mode],
    [t("Memory unit"), node.status.memoryUnit],
  ];
  return (
    <Panel title={t("Settings")}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t("Setting")}</th>
            <th scope="col">{t("Desired")}</th>
            <th scope="col">{t("Effective")}</th>
            <th scope="col">{t("Blocked by")}</th>
          </tr>
        </thead>
        <tbody>
          {settings.map(([name, setting]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{setting.desired || "-"}</td>
              <td>
                {setting.desired === setting.effective ? (
                  setting.effective || "-"
                ) : (
                  <Status state="pending" tone="warn">
                    {setting.effective || "-"}
                  </Status>
                )}
              </td>
              <td>
                {setting.blockedBy.length ? (
                  <span className="link-list">
                    {setting.blockedBy.map((name) => (
                      <SliceLink key={name} node={node.metadata.name} name={name} />
                    ))}
                  </span>
                ) : (
                  "-"
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <Facts
        rows={[
          [t("Placement"), node.status.placement],
          [t("Policy per slice"), node.status.hasPolicyPerSlice ? t("yes") : t("no")],
          [t("Best effort"), node.status.admitsBestEffort ? t("allowed") : t("refused")],
          [t("Contexts count against"), node.status.contextsInSlice ? t("the slice") : t("the reserve")],
        ]}
      />
    </Panel>
  );
}
