// Invoices: sums and lines of a month with the rule written out, month against month, budgets and tariffs.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useSearchParams } from "wouter";
import { get, getText } from "../api/client";
import type { Bill, InvoiceLine } from "../api/types";
import { useT } from "../i18n";
import { Button, Empty, ErrorPanel, Loading, Meter, Page, Panel, Status } from "../ui/basics";
import { useAction } from "../ui/dialog";
import { SelectField, TextField } from "../ui/fields";
import { amount, bytes, clock, share } from "../ui/format";
import { type Column, DataTable } from "../ui/table";
import { ObjectLink } from "./amounts";
import { Budgets } from "./budgets";
import { Tariffs } from "./tariffs";

const month_format = /^\d{4}-\d{2}$/;
export const monthOf = (date: Date) =>
  `${date.getUTCFullYear()}-${String(date.getUTCMonth() + 1).padStart(2, "0")}`;
// "2026-11" plus -1 is "2026-10".
export function addMonths(month: string, count: number): string {
  const [year, number] = month.split("-").map(Number) as [number, number];
  return monthOf(new Date(Date.UTC(year, number - 1 + count, 1)));
}
// The window of a month in the API's form, whose end is exclusive.
export const windowOf = (month: string) => ({
  from: `${month}-01T00:00:00Z`,
  to: `${addMonths(month, 1)}-01T00:00:00Z`,
});

type Sum = Bill["items"][number];

// The key of a sum, with a link to the object that it names: "service default/chat", "default/pi" for a job, or a queue.
function SumKey({ sum, by, select }: { sum: Sum; by: string; select: (key: string) => void }) {
  const t = useT();
  if (sum.is_rest) return <>{t("(rest)")}</>;
  if (by === "account")
    return (
      <Button kind="quiet" onClick={() => select(sum.key)}>
        {sum.key}
      </Button>
    );
  const named = /^(?:(\w+) )?(?:.*\/)?(.+)$/.exec(sum.key);
  if (by === "queue")
    return (
      <ObjectLink kind="queue" name={sum.key}>
        {sum.key}
      </ObjectLink>
    );
  return named && (by === "service" || by === "job") ? (
    <ObjectLink kind={named[1] ?? by} name={named[2]!}>
      {sum.key}
    </ObjectLink>
  ) : (
    <>{sum.key}</>
  );
}

function SumTable({
  now,
  before,
  by,
  currency,
  select,
}: {
  now: Sum[];
  before: Map<string, Sum>;
  by: string;
  currency: string;
  select: (key: string) => void;
}) {
  const t = useT();
  const columns = useMemo<Column<Sum>[]>(() => {
    const old = (s: Sum) => before.get(s.key);
    return [
      {
        key: "key",
        header: by.startsWith("label:")
          ? by.slice(6)
          : t(
              by === "account"
                ? "Account"
                : by === "user"
                  ? "User"
                  : by === "queue"
                    ? "Queue"
                    : by === "job"
                      ? "Job"
                      : by === "service"
                        ? "Service"
                        : "Device",
            ),
        cell: (s) => <SumKey sum={s} by={by} select={select} />,
        sortBy: (s) => s.key,
        text: (s) => s.key,
      },
      { key: "lines", header: t("Lines"), numeric: true, cell: (s) => s.lines, sortBy: (s) => s.lines },
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
        key: "ratio",
        header: t("Used of granted"),
        cell: (s) => {
          const text =
            Number(s.gpu_hours) > 0
              ? `${((Number(s.used_gpu_hours) / Number(s.gpu_hours)) * 100).toFixed(1)}%`
              : "-";
          return (
            <span className="amounts">
              <Meter
                label={text}
                whole={Number(s.gpu_hours)}
                parts={[{ value: Number(s.used_gpu_hours), tone: "used" }]}
              />
              <span>{text}</span>
            </span>
          );
        },
        sortBy: (s) => Number(s.used_gpu_hours) / Math.max(Number(s.gpu_hours), 1e-9),
      },
      {
        key: "amount",
        header: currency ? t("Amount ({currency})", { currency }) : t("Amount"),
        numeric: true,
        cell: (s) => amount(s.amount),
        sortBy: (s) => Number(s.amount),
      },
      {
        key: "before",
        header: t("Month before"),
        numeric: true,
        cell: (s) => (old(s) ? amount(old(s)!.amount) : "-"),
        sortBy: (s) => Number(old(s)?.amount ?? 0),
      },
      {
        key: "change",
        header: t("Change"),
        numeric: true,
        cell: (s) =>
          old(s) && Number(old(s)!.amount) > 0
            ? `${((Number(s.amount) / Number(old(s)!.amount) - 1) * 100).toFixed(0)}%`
            : "-",
      },
      {
        key: "unpriced",
        header: t("No price"),
        numeric: true,
        cell: (s) => (Number(s.unpriced_seconds) > 0 ? `${amount(s.unpriced_seconds)} s` : "-"),
        sortBy: (s) => Number(s.unpriced_seconds),
      },
    ];
  }, [t, before, by, currency, select]);
  return (
    <DataTable
      label={t("Sums")}
      columns={columns}
      rows={now}
      rowKey={(s) => `${s.is_rest} ${s.key}`}
      sort={{ key: "amount", isDescending: true }}
      empty={
        <Empty title={t("No invoice line in this month")}>
          {t("A line appears a few seconds after a slice is granted.")}
        </Empty>
      }
    />
  );
}

function LineTable({ lines, currency }: { lines: InvoiceLine[]; currency: string }) {
  const t = useT();
  const columns = useMemo<Column<InvoiceLine>[]>(
    () => [
      {
        key: "pod",
        header: t("Slice"),
        cell: (l) => <span title={l.id}>{l.pod}</span>,
        sortBy: (l) => l.pod,
        text: (l) =>
          `${l.pod} ${l.id} ${l.name} ${l.queue} ${Object.entries(l.labels)
            .map((e) => e.join("="))
            .join(" ")}`,
      },
      {
        key: "account",
        header: t("Account"),
        cell: (l) => l.account,
        sortBy: (l) => l.account,
        text: (l) => l.account,
      },
      {
        key: "granted",
        header: t("Granted"),
        cell: (l) => (
          <span className="nowrap">{`${bytes(l.memory_bytes)}, ${l.share_bp ? share(l.share_bp) : "-"}`}</span>
        ),
        sortBy: (l) => l.memory_bytes,
      },
      {
        key: "hours",
        header: t("GPU-hours"),
        numeric: true,
        cell: (l) => amount(l.gpu_hours),
        sortBy: (l) => Number(l.gpu_hours),
      },
      {
        key: "used",
        header: t("Used"),
        numeric: true,
        cell: (l) => amount(l.used_gpu_hours),
        sortBy: (l) => Number(l.used_gpu_hours),
      },
      {
        key: "amount",
        header: currency ? t("Amount ({currency})", { currency }) : t("Amount"),
        numeric: true,
        cell: (l) =>
          l.unpriced ? (
            <Status state="no" tone="warn">
              {l.unpriced}
            </Status>
          ) : (
            amount(l.amount)
          ),
        sortBy: (l) => Number(l.amount),
      },
      {
        key: "formula",
        header: t("GPU-hours = hours x units x max(share, memory)"),
        cell: (l) => <div className="formula">{l.formula || `${l.seconds} s`}</div>,
      },
      {
        key: "from",
        header: t("From"),
        cell: (l) => <span className="nowrap">{clock(l.from)}</span>,
        sortBy: (l) => l.from,
      },
      {
        key: "to",
        header: t("To"),
        cell: (l) => <span className="nowrap">{l.open ? t("now") : clock(l.to)}</span>,
        sortBy: (l) => l.to,
      },
      {
        key: "model",
        header: t("Model"),
        cell: (l) => <span className="nowrap">{l.model}</span>,
        sortBy: (l) => l.model,
        text: (l) => l.model,
      },
      {
        key: "peak",
        header: t("Peak"),
        numeric: true,
        cell: (l) => bytes(l.peak_bytes),
        sortBy: (l) => l.peak_bytes,
      },
    ],
    [t, currency],
  );
  return (
    <DataTable
      label={t("Lines")}
      columns={columns}
      rows={lines}
      rowKey={(l) => l.id}
      sort={{ key: "from", isDescending: true }}
      empty={<Empty title={t("No invoice line in this month")} />}
    />
  );
}

export function InvoicesPage() {
  const t = useT();
  const [parameters, setParameters] = useSearchParams();
  const { run } = useAction();
  const thisMonth = monthOf(new Date());
  const month = month_format.test(parameters.get("month") ?? "") ? parameters.get("month")! : thisMonth;
  const by = parameters.get("by") ?? "account";
  const account = parameters.get("account") ?? "";
  const [label, setLabel] = useState(by.startsWith("label:") ? by.slice(6) : "");
  const set = (change: Record<string, string>) =>
    setParameters(
      (old) => {
        const next = new URLSearchParams(old);
        for (const [key, value] of Object.entries(change))
          if (value) next.set(key, value);
          else next.delete(key);
        return next;
      },
      { replace: true },
    );
  const query = (of: string) => ({ ...windowOf(of), by, account });
  const isValid = by !== "label:";
  const now = useQuery({
    queryKey: ["bill", month, by, account],
    queryFn: () => get<Bill>("/v1/bills", { ...query(month), lines: true }),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
    enabled: isValid,
  });
  const before = useQuery({
    queryKey: ["bill", addMonths(month, -1), by, account, "sums"],
    queryFn: () => get<Bill>("/v1/bills", query(addMonths(month, -1))),
    enabled: isValid,
  });
  const beforeMap = useMemo(() => new Map((before.data?.items ?? []).map((s) => [s.key, s])), [before.data]);
  const download = async () => {
    const csv = await getText("/v1/bills", { ...query(month), lines: true }, "text/csv");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
    link.download = `carve-invoice-${month}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const months = Array.from({ length: 13 }, (_, i) => addMonths(thisMonth, -i));
  const currency = now.data?.currency ?? "";
  return (
    <Page
      title={t("Invoices")}
      lead={
        account && (
          <>
            {t("account {account}", { account })}{" "}
            <Button kind="quiet" onClick={() => set({ account: "", by: "account" })}>
              {t("all accounts")}
            </Button>
          </>
        )
      }
      actions={<Button onClick={() => void run(download, t("CSV saved"))}>{t("Download CSV")}</Button>}
    >
      <Panel>
        <div className="row-fields">
          <SelectField
            label={t("Month")}
            value={month}
            onChange={(value) => set({ month: value })}
            options={months.map((m) => ({
              value: m,
              label: m === thisMonth ? t("{month} (this month)", { month: m }) : m,
            }))}
          />
          <SelectField
            label={t("Sums by")}
            value={by.startsWith("label:") ? "label:" : by}
            onChange={(value) => set({ by: value === "label:" ? `label:${label}` : value })}
            options={[
              { value: "account", label: t("Account") },
              { value: "user", label: t("User") },
              { value: "queue", label: t("Queue") },
              { value: "job", label: t("Job") },
              { value: "service", label: t("Service") },
              { value: "device", label: t("Device") },
              { value: "label:", label: t("Label") },
            ]}
          />
          {by.startsWith("label:") && (
            <TextField
              label={t("Key of the label")}
              value={label}
              onChange={(value) => {
                setLabel(value);
                set({ by: `label:${value.trim()}` });
              }}
            />
          )}
        </div>
        {now.data && (
          <div className="figures">
            {(
              [
                [t("amount"), now.data.currency ? `${amount(now.data.total.amount)} ${currency}` : "-"],
                [
                  t("month before"),
                  before.data?.currency ? `${amount(before.data.total.amount)} ${before.data.currency}` : "-",
                ],
                [t("GPU-hours granted"), amount(now.data.total.gpu_hours)],
                [t("GPU-hours used"), amount(now.data.total.used_gpu_hours)],
                [t("lines"), String(now.data.total.lines)],
              ] as [string, string][]
            ).map(([name, value]) => (
              <div className="figure" key={name}>
                <strong>{value}</strong>
                <span>{name}</span>
              </div>
            ))}
          </div>
        )}
        {now.error && <ErrorPanel error={now.error} />}
        {now.data?.refused?.map((text) => (
          <ErrorPanel key={text} error={new Error(text)} />
        ))}
      </Panel>
      <Panel title={t("Sums")} flush>
        {now.isPending ? (
          <Loading />
        ) : (
          <SumTable
            now={now.data?.items ?? []}
            before={beforeMap}
            by={by}
            currency={currency}
            select={(key) => set({ account: key, by: "service" })}
          />
        )}
      </Panel>
      <Panel title={t("Lines")} flush>
        {now.isPending ? <Loading /> : <LineTable lines={now.data?.lines ?? []} currency={currency} />}
      </Panel>
      <Budgets />
      <Tariffs />
    </Page>
  );
}
