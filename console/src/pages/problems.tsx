// The list of problems, from the states that the API reports.
import { useMemo } from "react";
import { useT } from "../i18n";
import { useNodes, useObjects } from "../live/objects";
import { Status, type Tone } from "../ui/basics";
import { ObjectLink } from "./amounts";

export interface FleetProblem {
  kind: string;
  name: string;
  state: string;
  tone: Tone;
  message: string;
}

export function useProblems(): FleetProblem[] {
  const t = useT();
  const nodes = useNodes();
  const pools = useObjects("Pool");
  const services = useObjects("Service");
  const applications = useObjects("Application");
  const budgets = useObjects("Budget");
  return useMemo(() => {
    const found: FleetProblem[] = [];
    for (const node of nodes) {
      const add = (state: string, tone: Tone, message: string) =>
        found.push({ kind: "node", name: node.metadata.name, state, tone, message });
      const agent = node.status.agent;
      if (agent?.reachability === "unreachable") add("unreachable", "bad", agent.problem);
      else if (node.status.state !== "Running")
        add(
          node.status.state,
          "warn",
          node.status.conditions.find((c) => c.type === "Ready")?.message ||
            t("{s} s remain", { s: node.status.readyInSeconds }),
        );
      for (const device of node.status.devices)
        if (device.health.state !== "ok")
          add(device.health.state, "bad", `${t("device {n}", { n: device.index })}: ${device.health.reason}`);
      for (const [name, setting] of Object.entries({
        policy: node.status.policy,
        mode: node.status.mode,
        "memory unit": node.status.memoryUnit,
      }))
        if (setting.desired !== setting.effective)
          add(
            "pending",
            "warn",
            `${name}: ${setting.effective} -> ${setting.desired}${setting.blockedBy.length ? `; ${t("blocked by {slices}", { slices: setting.blockedBy.join(", ") })}` : ""}`,
          );
    }
    for (const pool of pools)
      if (pool.status.drift.length > 0)
        found.push({
          kind: "pool",
          name: pool.metadata.name,
          state: "drift",
          tone: "warn",
          message: t("{n} labels of nodes differ from the pool's", { n: pool.status.drift.length }),
        });
    for (const workload of [...services, ...applications]) {
      const { phase, conditions } = workload.status;
      const isBad = ["CrashLoopBackOff", "ImagePullFailed", "Failed"].includes(phase);
      const failing = conditions.find(
        (c) =>
          (c.type === "Available" && c.status === "False") ||
          (c.type === "Progressing" && c.status === "False") ||
          (c.type === "Degraded" && c.status === "True"),
      );
      if (isBad || (failing && !["Stopped", "Succeeded", "Deleting"].includes(phase)))
        found.push({
          kind: workload.kind.toLowerCase(),
          name: workload.metadata.name,
          state: phase,
          tone: isBad ? "bad" : "warn",
          message: failing?.message || failing?.reason || "",
        });
    }
    for (const budget of budgets)
      if (budget.status.reached > 0)
        found.push({
          kind: "budget",
          name: budget.metadata.name,
          state: `${budget.status.percent}%`,
          tone: budget.status.holds ? "bad" : "warn",
          message: budget.status.holds
            ? t("jobs of account {account} wait", { account: budget.spec.account })
            : t("account {account}", { account: budget.spec.account }),
        });
    return found.sort((a, b) => Number(a.tone !== "bad") - Number(b.tone !== "bad"));
  }, [nodes, pools, services, applications, budgets, t]);
}

export function ProblemList({ problems }: { problems: FleetProblem[] }) {
  return (
    <table>
      <tbody>
        {problems.map((problem, i) => (
          <tr key={i}>
            <th scope="row">
              <ObjectLink
                kind={problem.kind}
                name={problem.name}
              >{`${problem.kind}/${problem.name}`}</ObjectLink>
            </th>
            <td>
              <Status state={problem.state} tone={problem.tone} />
            </td>
            <td className="cell-message">{problem.message}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
