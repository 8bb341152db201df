// Who held slices over a day or a month: how many came and went, how long they stayed, and whose were idle. From the
// usage records, which the controller keeps without a limit.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { get } from "../api/client";
import type { Allocations } from "../api/types";
import { useT } from "../i18n";
import { Age, Empty, ErrorPanel, Loading, Panel } from "../ui/basics";
import { SelectField } from "../ui/fields";
import { age, amount } from "../ui/format";
import { type Column, DataTable } from "../ui/table";

type Sum = Allocations["items"][number];
const max_rows = 10;
const day_ms = 86_400_000;

const utcText = (ms: number) => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");

// Returns the period that ends now and has this many days.
export function periodOf(days: number, now_ms: number): { from: string; to: string } {
  return { from: utcText(now_ms - days * day_ms), to: utcText(now_ms + 1000) };
}

// Returns the ten groups with the most idle GPU-hours.
export function mostIdle(items: Sum[]): Sum[] {
  return [...items]
    .sort(
      (a, b) =>
        Number(b.idle_gpu_hours) - Number(a.idle_gpu_hours) || Number(b.gpu_hours) - Number(a.gpu_hours),
    )
    .slice(0, max_rows);
}

// Returns the granted part of the devices over the whole period in percent; null if it is not known.
export function grantedPercent(days: Allocations["days"]): number | null {
  const known = days.filter((d) => d.usable_device_hours !== undefined);
  const usable = known.reduce((sum, d) => sum + Number(d.usable_device_hours), 0);
  const granted = known.reduce((sum, d) => sum + Number(d.granted_device_hours), 0);
  return usable > 0 ? (100 * granted) / usable : null;
}

function useUsageColumns(by: string, currency: string): Column<Sum>[] {
  const t = useT();
  return useMemo(
    () => [
      {
        key: "key",
        header: by === "account" ? t("Account") : by === "user" ? t("User") : t("Service or job"),
        cell: (s) => s.key || "-",
        sortBy: (s) => s.key,
        text: (s) => s.key,
      },
      {
        key: "idle",
        header: t("Idle GPU-hours"),
        numeric: true,
        cell: (s) => amount(s.idle_gpu_hours),
        sortBy: (s) => Number(s.idle_gpu_hours),
      },
      {
        key: "hours",
        header: t("GPU-hours granted"),
        numeric: true,
        cell: (s) => amount(s.gpu_hours),
        sortBy: (s) => Number(s.gpu_hours),
      },
      {
        key: "used",
        header: t("GPU-hours used"),
        numeric: true,
        cell: (s) => amount(s.used_gpu_hours),
        sortBy: (s) => Number(s.used_gpu_hours),
      },
      {
        key: "amount",
        header: currency ? t("Amount ({currency})", { currency }) : t("Amount"),
        numeric: true,
        cell: (s) => amount(s.amount),
        sortBy: (s) => Number(s.amount),
      },
      {
        key: "came",
        header: t("Came / went"),
        numeric: true,
        cell: (s) => `${s.begun} / ${s.ended}`,
        sortBy: (s) => s.begun,
      },
      { key: "held", header: t("Held now"), numeric: true, cell: (s) => s.held, sortBy: (s) => s.held },
      {
        key: "stay",
        header: t("Median stay"),
        numeric: true,
        cell: (s) => age(s.median_stay_seconds * 1e9),
        sortBy: (s) => s.median_stay_seconds,
      },
      {
        key: "since",
        header: t("Since"),
        numeric: true,
        cell: (s) => (s.since ? <Age since={s.since} /> : "-"),
        sortBy: (s) => (s.since ? -Date.parse(s.since) : 0),
      },
    ],
    [t, by, currency],
  );
}

export function UsagePanel() {
  const t = useT();
  const [days, setDays] = useState("1");
  const [by, setBy] = useState("account");
  const all = useQuery({
    queryKey: ["allocations", days, by],
    queryFn: ({ signal }) =>
      get<Allocations>("/v1/allocations", { ...periodOf(Number(days), Date.now()), by, step: "day" }, signal),
    placeholderData: keepPreviousData,
    refetchInterval: 30_000,
  });
  const columns = useUsageColumns(by, all.data?.currency ?? "");
  const top = useMemo(() => mostIdle(all.data?.items ?? []), [all.data]);
  const total = all.data?.total;
  const granted = grantedPercent(all.data?.days ?? []);
  return (
    <Panel
      title={t("Came and went")}
      flush
      actions={
        <>
          <SelectField
            label={t("Group by")}
            hidesLabel
            value={by}
            onChange={setBy}
            options={[
              { value: "account", label: t("Account") },
              { value: "user", label: t("User") },
              { value: "service", label: t("Service") },
            ]}
          />
          <SelectField
            label={t("Period")}
            hidesLabel
            value={days}
            onChange={setDays}
            options={[
              { value: "1", label: t("last day") },
              { value: "30", label: t("last 30 days") },
            ]}
          />
        </>
      }
    >
      {all.isPending ? (
        <Loading />
      ) : all.error ? (
        <ErrorPanel error={all.error} />
      ) : (
        total && (
          <div className="figures">
            {[
              [t("slices granted"), String(total.begun)],
              [t("slices ended"), String(total.ended)],
              [t("median stay"), total.allocations ? age(total.median_stay_seconds * 1e9) : "-"],
              [t("longest stay"), total.allocations ? age(total.longest_stay_seconds * 1e9) : "-"],
              [t("idle GPU-hours"), amount(total.idle_gpu_hours)],
              [t("granted part of the devices"), granted === null ? "-" : `${granted.toFixed(1)}%`],
            ].map(([name, value]) => (
              <div className="figure" key={name}>
                <strong>{value}</strong>
                <span>{name}</span>
              </div>
            ))}
          </div>
        )
      )}
      <DataTable
        label={t("Most idle")}
        columns={columns}
        rows={top}
        rowKey={(s) => `${s.is_rest} ${s.key}`}
        sort={{ key: "idle", isDescending: true }}
        empty={<Empty title={t("No slice was held in this period")} />}
      />
    </Panel>
  );
}
