// The use of the fleet: all slices, or their sums by account, user, service or label; selected slices are stopped or
// resized together.
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import { useSearchParams } from "wouter";
import { call, get, path } from "../api/client";
import { useRights } from "../api/session";
import type { Bill } from "../api/types";
import { useT } from "../i18n";
import { type NodeSlice, useSlices } from "../live/objects";
import { Age, Button, Code, Empty, ErrorPanel, Loading, Page, Panel, Status } from "../ui/basics";
import { ConfirmDialog } from "../ui/dialog";
import { SelectField } from "../ui/fields";
import { age, amount, bytes, percent, share } from "../ui/format";
import { type Column, DataTable } from "../ui/table";
import {
  achievedOf,
  chargedOf,
  isIdle,
  MemoryCell,
  quotaOf,
  SliceLink,
  shareOf,
  sharesText,
  WorkloadLink,
  workloadOf,
  workloadText,
} from "./amounts";
import { ResizeDialog } from "./resize";
import { UsagePanel } from "./usage";

const keyOf = (slice: NodeSlice) => `${slice.node}/${slice.name}`;

function useColumns(): Column<NodeSlice>[] {
  const t = useT();
  return useMemo(
    () => [
      {
        key: "name",
        header: t("Slice"),
        cell: (s) => <SliceLink node={s.node} name={s.name} />,
        sortBy: (s) => s.name,
        text: (s) => s.name,
      },
      {
        key: "state",
        header: t("State"),
        cell: (s) => <Status state={s.state} />,
        sortBy: (s) => s.state,
        text: (s) => s.state,
      },
      {
        key: "account",
        header: t("Account"),
        cell: (s) => s.account,
        sortBy: (s) => s.account,
        text: (s) => s.account,
      },
      {
        key: "workload",
        header: t("Service or job"),
        cell: (s) => <WorkloadLink slice={s} />,
        sortBy: workloadText,
        text: (s) =>
          `${workloadText(s)} ${Object.entries(s.labels)
            .map((e) => e.join("="))
            .join(" ")}`,
      },
      {
        key: "device",
        header: t("Device"),
        cell: (s) => <span className="nowrap">{`${s.node} · ${s.parts.map((p) => p.index).join(",")}`}</span>,
        sortBy: (s) => `${s.node} ${s.parts.map((p) => p.index).join(",")}`,
        text: (s) => s.node,
      },
      {
        key: "memory",
        header: t("Memory used"),
        cell: (s) => <MemoryCell used={chargedOf(s)} granted={quotaOf(s)} />,
        sortBy: quotaOf,
      },
      { key: "share", header: t("Share"), numeric: true, cell: sharesText, sortBy: shareOf },
      {
        key: "used",
        header: t("Used in 60 s"),
        numeric: true,
        cell: (s) =>
          isIdle(s) ? (
            <Status state="idle" tone="idle">
              {t("idle for {time}", { time: age(s.idle_seconds * 1e9) })}
            </Status>
          ) : (
            percent(achievedOf(s))
          ),
        sortBy: (s) => achievedOf(s) || -s.idle_seconds,
      },
      {
        key: "since",
        header: t("Since"),
        numeric: true,
        cell: (s) => <Age since={s.created_ns} />,
        sortBy: (s) => -s.created_ns,
      },
      {
        key: "command",
        header: t("Command"),
        cell: (s) => (
          <span className="mono" title={s.command}>
            {s.command.slice(0, 40)}
          </span>
        ),
        text: (s) => s.command,
      },
    ],
    [t],
  );
}

export interface UsageGroup {
  key: string;
  slices: NodeSlice[];
  quota: number;
  charged: number;
  share: number;
  achieved: number;
  idle: number;
  since: number;
}

// Sums slices by the value of `by`: "account", "user", "service" or "label:KEY".
export function groupSlices(slices: NodeSlice[], by: string): UsageGroup[] {
  const groups = new Map<string, UsageGroup>();
  for (const slice of slices) {
    const key =
      by === "account"
        ? slice.account
        : by === "user"
          ? `uid ${slice.owner_uid}`
          : by === "service"
            ? workloadText(slice)
            : (slice.labels[by.slice("label:".length)] ?? "-");
    const group = groups.get(key) ?? {
      key,
      slices: [],
      quota: 0,
      charged: 0,
      share: 0,
      achieved: 0,
      idle: 0,
      since: slice.created_ns,
    };
    group.slices.push(slice);
    group.quota += quotaOf(slice);
    group.charged += chargedOf(slice);
    group.share += shareOf(slice);
    group.achieved += achievedOf(slice);
    group.idle += isIdle(slice) ? 1 : 0;
    group.since = Math.min(group.since, slice.created_ns);
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => b.quota - a.quota);
}

// The key of the group in the sums of the invoice: "service default/demo", or the uid of a user.
function billKeyOf(group: UsageGroup, by: string): string {
  const slice = group.slices[0]!;
  if (by === "user") return String(slice.owner_uid);
  const { kind, name } = workloadOf(slice);
  if (by !== "service" || !kind) return group.key;
  return `${kind} ${slice.labels["carve.dev/namespace"] ?? "default"}/${name}`;
}

function GroupTable({
  groups,
  by,
  selected,
  change,
  toolbar,
}: {
  groups: UsageGroup[];
  by: string;
  toolbar: ReactNode;
  selected: ReadonlySet<string>;
  change: (selected: ReadonlySet<string>) => void;
}) {
  const t = useT();
  const bill = useQuery({
    queryKey: ["bill", "month", by],
    queryFn: () => get<Bill>("/v1/bills", { by }),
    refetchInterval: 15_000,
  });
  const costs = useMemo(
    () =>
      new Map((bill.data?.items ?? []).map((item) => [by === "user" ? String(item.uid) : item.key, item])),
    [bill.data, by],
  );
  const currency = bill.data?.currency ?? "";
  const columns = useMemo<Column<UsageGroup>[]>(() => {
    const costOf = (g: UsageGroup) => costs.get(billKeyOf(g, by));
    return [
      {
        key: "key",
        header:
          by === "account"
            ? t("Account")
            : by === "user"
              ? t("User")
              : by === "service"
                ? t("Service or job")
                : by.slice(6),
        // The invoice has the names of users.
        cell: (g) => (by === "user" ? costOf(g)?.key : undefined) ?? (g.key || "-"),
        sortBy: (g) => g.key,
        text: (g) => (by === "user" ? `${g.key} ${costOf(g)?.key ?? ""}` : g.key),
      },
      {
        key: "slices",
        header: t("Slices"),
        numeric: true,
        cell: (g) => g.slices.length,
        sortBy: (g) => g.slices.length,
      },
      {
        key: "memory",
        header: t("Memory used"),
        cell: (g) => <MemoryCell used={g.charged} granted={g.quota} />,
        sortBy: (g) => g.quota,
      },
      {
        key: "share",
        header: t("Share granted"),
        numeric: true,
        cell: (g) => share(g.share),
        sortBy: (g) => g.share,
      },
      {
        key: "used",
        header: t("Used in 60 s"),
        numeric: true,
        cell: (g) => percent(g.achieved),
        sortBy: (g) => g.achieved,
      },
      { key: "idle", header: t("Idle slices"), numeric: true, cell: (g) => g.idle, sortBy: (g) => g.idle },
      {
        key: "hours",
        header: t("GPU-hours this month"),
        numeric: true,
        cell: (g) => (costOf(g) ? amount(costOf(g)!.gpu_hours) : "-"),
        sortBy: (g) => Number(costOf(g)?.gpu_hours ?? 0),
      },
      {
        key: "cost",
        header: currency ? t("Amount ({currency})", { currency }) : t("Amount"),
        numeric: true,
        cell: (g) => (costOf(g) ? amount(costOf(g)!.amount) : "-"),
        sortBy: (g) => Number(costOf(g)?.amount ?? 0),
      },
      {
        key: "since",
        header: t("Since"),
        numeric: true,
        cell: (g) => <Age since={g.since} />,
        sortBy: (g) => -g.since,
      },
    ];
  }, [t, by, costs, currency]);
  // A group is selected if all of its slices are.
  const chosen = useMemo(
    () => new Set(groups.filter((g) => g.slices.every((s) => selected.has(keyOf(s)))).map((g) => g.key)),
    [groups, selected],
  );
  const selection = useMemo(
    () => ({
      selected: chosen,
      change: (keys: ReadonlySet<string>) =>
        change(new Set(groups.filter((g) => keys.has(g.key)).flatMap((g) => g.slices.map(keyOf)))),
    }),
    [chosen, groups, change],
  );
  return (
    <DataTable
      label={t("Use by group")}
      columns={columns}
      rows={groups}
      rowKey={(g) => g.key}
      selection={selection}
      toolbar={toolbar}
      empty={null}
    />
  );
}

export function SlicesPage() {
  const t = useT();
  const [parameters, setParameters] = useSearchParams();
  const by = parameters.get("by") ?? "slice";
  const { slices, problems, isLoading } = useSlices();
  const { mayChange } = useRights();
  const columns = useColumns();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [open, setOpen] = useState<"stop" | "resize" | null>(null);
  const chosen = slices.filter((s) => selected.has(keyOf(s)));
  const labelKeys = useMemo(
    () =>
      [...new Set(slices.flatMap((s) => Object.keys(s.labels)))]
        .filter((key) => !key.startsWith("carve.dev/"))
        .sort(),
    [slices],
  );
  const groups = useMemo(() => (by === "slice" ? [] : groupSlices(slices, by)), [slices, by]);
  const idle = slices.filter(isIdle);
  const bar = (
    <div className="bulk">
      {chosen.length > 0 ? (
        <>
          <span className="muted">{t("{n} selected", { n: chosen.length })}</span>
          <Button kind="danger" disabled={!mayChange} onClick={() => setOpen("stop")}>
            {t("Stop")}
          </Button>
          <Button disabled={!mayChange} onClick={() => setOpen("resize")}>
            {t("Resize")}
          </Button>
        </>
      ) : (
        idle.length > 0 &&
        mayChange && (
          <Button onClick={() => setSelected(new Set(idle.map(keyOf)))}>
            {t("Select {n} idle", { n: idle.length })}
          </Button>
        )
      )}
    </div>
  );
  const toolbar = (
    <>
      <SelectField
        label={t("Group by")}
        value={by}
        onChange={(value) => setParameters(value === "slice" ? {} : { by: value }, { replace: true })}
        options={[
          { value: "slice", label: t("not grouped") },
          { value: "account", label: t("Account") },
          { value: "user", label: t("User") },
          { value: "service", label: t("Service or job") },
          ...labelKeys.map((key) => ({ value: `label:${key}`, label: t("label {key}", { key }) })),
        ]}
      />
      {bar}
    </>
  );
  return (
    <Page title={t("Slices")} lead={t("who uses what, and since when")}>
      {problems.map((p, i) => (
        <ErrorPanel key={i} error={new Error(p.message)} />
      ))}
      <Panel flush>
        {by !== "slice" && slices.length > 0 ? (
          <GroupTable groups={groups} by={by} selected={selected} change={setSelected} toolbar={toolbar} />
        ) : (
          <DataTable
            label={t("Slices")}
            columns={columns}
            rows={slices}
            rowKey={keyOf}
            hasFilter={slices.length > 0}
            toolbar={slices.length > 0 && toolbar}
            sort={{ key: "memory", isDescending: true }}
            {...(mayChange && { selection: { selected, change: setSelected } })}
            empty={
              isLoading ? (
                <Loading />
              ) : (
                <Empty title={t("No slices")}>
                  {t(
                    "A slice is a part of a GPU for one program. Create a service, submit a job, or run a program:",
                  )}
                  <Code>carve run --memory 2GiB -- PROGRAM</Code>
                </Empty>
              )
            }
          />
        )}
      </Panel>
      <UsagePanel />
      {open === "stop" && (
        <ConfirmDialog
          title={t("Stop {n} slices?", { n: chosen.length })}
          verb={t("Stop {n} slices", { n: chosen.length })}
          isDangerous
          act={async () => {
            for (const slice of chosen)
              await call("DELETE", path`/v1/nodes/${slice.node}/slices/${slice.name}`);
            setSelected(new Set());
          }}
          onClose={() => setOpen(null)}
        >
          <p>
            {t("All processes of these slices end. A slice of a service or job is replaced by a new one.")}
          </p>
          <ul>
            {chosen.map((slice) => (
              <li key={keyOf(slice)}>
                {keyOf(slice)}{" "}
                <span className="muted">{`${bytes(quotaOf(slice))}, ${workloadText(slice)}`}</span>
              </li>
            ))}
          </ul>
        </ConfirmDialog>
      )}
      {open === "resize" && <ResizeDialog slices={chosen} onClose={() => setOpen(null)} />}
    </Page>
  );
}
