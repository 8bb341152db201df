// The resource groups of a PAI-EAS service, and the checks that GPU slicing requires.
import { useQuery } from "@tanstack/react-query";
import { get, path } from "../api/client";
import type { Node, Pool, Slicing } from "../api/types";
import type { EasForm } from "../forms/eas";
import { type Key, useT } from "../i18n";
import { Banner, Panel, Status } from "../ui/basics";

export const check_texts: Record<string, Key> = {
  "resource-type": "Resource type: an EAS resource group or a resource quota",
  "gpu-count": "The GPU column of the group is not 0",
  "instance-state": "The instances are running and initialised",
  sharing: "Sharing is enabled for the group",
};

// The checks of "Why is the GPU slicing option missing?" for a group without a pool: all nodes form one group.
function checksWithoutPool(nodes: Node[]): Slicing {
  const gpuNodes = nodes.filter((n) => n.status.gpus > 0);
  const running = gpuNodes.filter((n) => n.status.state === "Running");
  const waiting = gpuNodes.find((n) => n.status.state !== "Running");
  const checks = [
    { name: "resource-type", ok: true, message: "" },
    { name: "gpu-count", ok: gpuNodes.length > 0, message: gpuNodes.length > 0 ? "" : "no node has a GPU" },
    {
      name: "instance-state",
      ok: running.length > 0,
      message: running.length > 0 ? "" : `node ${waiting?.metadata.name} is ${waiting?.status.state}`,
    },
  ];
  const failed = checks.findIndex((check) => !check.ok);
  return {
    available: failed < 0,
    checks: failed < 0 ? checks : checks.slice(0, failed + 1),
    failed: failed < 0 ? "" : checks[failed]!.name,
    easProblem: "",
  };
}

const no_public_slicing: Slicing = {
  available: false,
  checks: [
    {
      name: "resource-type",
      ok: false,
      message: "public resources cannot be sliced; choose an EAS resource group or a resource quota",
    },
  ],
  failed: "resource-type",
  easProblem: "",
};

export function useSlicing(form: EasForm, pools: Pool[], nodes: Node[]): Slicing | undefined {
  const isPool = pools.some((p) => p.metadata.name === form.resource);
  const asked = useQuery({
    queryKey: ["slicing", form.resource],
    queryFn: () => get<Slicing>(path`/v1/pools/${form.resource}/slicing`),
    enabled: isPool,
    refetchInterval: 2000, // A node that becomes Running enables the option.
  });
  if (isPool) return asked.data;
  if (form.resourceType === "public") return no_public_slicing;
  return form.resource === "" && pools.length === 0 ? checksWithoutPool(nodes) : undefined;
}

export function WhyMissing({ slicing }: { slicing: Slicing | undefined }) {
  const t = useT();
  return (
    <Panel title={<span id="why">{t("Why is the GPU slicing option missing?")}</span>}>
      {!slicing ? (
        <p className="muted">{t("Choose a resource group first.")}</p>
      ) : (
        <ol className="checks">
          {[
            "resource-type",
            "gpu-count",
            "instance-state",
            ...(slicing.failed === "sharing" ? ["sharing"] : []),
          ].map((name) => {
            const check = slicing.checks.find((c) => c.name === name);
            return (
              <li key={name}>
                <Status state={name} tone={check ? (check.ok ? "ok" : "bad") : "idle"}>
                  {check ? (check.ok ? t("ok") : t("failed")) : t("not checked")}
                </Status>
                <span>{t(check_texts[name]!)}</span>
                {check && !check.ok && <span className="help">{check.message}</span>}
                {check && !check.ok && name === "instance-state" && (
                  <span className="help">
                    {t(
                      "After the first purchase, initialisation typically takes 8 to 10 minutes. The option becomes available by itself.",
                    )}
                  </span>
                )}
              </li>
            );
          })}
        </ol>
      )}
      {slicing?.easProblem && <Banner tone="warn">{slicing.easProblem}</Banner>}
    </Panel>
  );
}

export function GroupTable({
  pools,
  nodes,
  value,
  onChange,
  isDisabled,
}: {
  pools: Pool[];
  nodes: Node[];
  value: string;
  onChange: (name: string) => void;
  isDisabled: boolean;
}) {
  const t = useT();
  const rows =
    pools.length > 0
      ? pools.map((p) => ({
          name: p.metadata.name,
          nodes: nodes.filter((n) => n.spec.pool === p.metadata.name),
          gpus: p.status.gpus,
        }))
      : [{ name: "", nodes, gpus: nodes.reduce((sum, n) => sum + n.status.gpus, 0) }];
  return (
    <div className="table-scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">{t("Resource group")}</th>
            <th scope="col" className="numeric">
              GPU
            </th>
            <th scope="col">{t("Instance type")}</th>
            <th scope="col">{t("Instance state")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const states = [...new Set(row.nodes.map((n) => n.status.state))];
            return (
              <tr key={row.name} aria-selected={row.name === value}>
                <th scope="row">
                  <label className="status">
                    <input
                      type="radio"
                      name="group"
                      checked={row.name === value}
                      disabled={isDisabled}
                      onChange={() => onChange(row.name)}
                    />
                    {row.name || t("all nodes")}
                  </label>
                </th>
                <td className="numeric">{row.gpus}</td>
                <td>
                  {[...new Set(row.nodes.map((n) => n.spec.instanceType).filter(Boolean))].join(", ") || "-"}
                </td>
                <td>
                  {states.length === 0
                    ? "-"
                    : states.map((state) => (
                        <Status key={state} state={state}>
                          {`${state} (${row.nodes.filter((n) => n.status.state === state).length})`}
                        </Status>
                      ))}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
