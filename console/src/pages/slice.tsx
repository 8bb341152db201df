// One slice: memory and compute over time, parts, processes, neighbours, terms, events and its invoice lines.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation, useParams } from "wouter";
import { call, get, path } from "../api/client";
import { useRights } from "../api/session";
import type { Bill, Slice } from "../api/types";
import { useT } from "../i18n";
import { type NodeSlice, useSlice, useSlices } from "../live/objects";
import { Banner, Button, Empty, ErrorPanel, Facts, Labels, Loading, Page, Panel, Status } from "../ui/basics";
import { ConfirmDialog } from "../ui/dialog";
import { amount, bytes, clock, percent, share, span } from "../ui/format";
import { achievedOf, MemoryCell, SliceLink, sharesText, WorkloadLink } from "./amounts";
import { SliceCharts } from "./history-charts";
import { ResizeDialog } from "./resize";

function PartsTable({ slice }: { slice: Slice }) {
  const t = useT();
  return (
    <Panel title={t("Parts")} flush>
      <div className="table-scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">{t("Device")}</th>
              <th scope="col">{t("Memory used")}</th>
              <th scope="col" className="numeric">
                {t("Peak")}
              </th>
              <th scope="col" className="numeric">
                {t("Share")}
              </th>
              <th scope="col" className="numeric">
                {t("Used in 1 s")}
              </th>
              <th scope="col" className="numeric">
                {t("Used in 60 s")}
              </th>
              <th scope="col" className="numeric">
                {t("Busy")}
              </th>
              <th scope="col" className="numeric">
                {t("Contended")}
              </th>
              <th scope="col" className="numeric">
                {t("Throttled")}
              </th>
              <th scope="col" className="numeric">
                {t("Burst")}
              </th>
              <th scope="col" className="numeric">
                {t("Wait p50 / p99")}
              </th>
              <th scope="col" className="numeric">
                {t("Overruns")}
              </th>
            </tr>
          </thead>
          <tbody>
            {slice.parts.map((part) => (
              <tr key={part.uuid}>
                <th scope="row" title={part.uuid}>{`${part.index} · ${part.device_name}`}</th>
                <td>
                  <MemoryCell used={part.charged_bytes} granted={part.quota_bytes} />
                </td>
                <td className="numeric">{bytes(part.peak_bytes)}</td>
                <td className="numeric">{part.share_bp ? share(part.share_bp) : "-"}</td>
                <td className="numeric">{percent(part.compute?.achieved_1s_bp ?? 0)}</td>
                <td className="numeric">{percent(part.compute?.achieved_60s_bp ?? 0)}</td>
                <td className="numeric">{span(part.compute?.busy_ns ?? 0)}</td>
                <td className="numeric">{span(part.compute?.waiting_ns ?? 0)}</td>
                <td className="numeric">{span(part.compute?.throttled_ns ?? 0)}</td>
                <td className="numeric">{span(part.compute?.burst_ns ?? 0)}</td>
                <td className="numeric">{`${span(part.compute?.wait_p50_ns ?? 0)} / ${span(part.compute?.wait_p99_ns ?? 0)}`}</td>
                <td className="numeric">{part.compute?.overruns ?? 0}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

// Returns for how long the other slice held a device while this one had work, in the last minute.
const delayedBy = (slice: Slice, other: string) =>
  slice.parts
    .flatMap((part) => part.compute?.waits_60s ?? [])
    .filter((wait) => wait.slice === other)
    .reduce((sum, wait) => sum + wait.waiting_ns, 0);

function Neighbours({ slice, node }: { slice: Slice; node: string }) {
  const t = useT();
  const { slices } = useSlices([node]);
  const devices = new Set(slice.parts.map((p) => p.uuid));
  const others = slices
    .filter((s) => s.name !== slice.name && s.parts.some((p) => devices.has(p.uuid)))
    .sort((a, b) => delayedBy(slice, b.name) - delayedBy(slice, a.name));
  return (
    <Panel title={t("Neighbours on its devices")}>
      {others.length === 0 ? (
        <p className="muted">{t("No other slice is on its devices.")}</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">{t("Slice")}</th>
              <th scope="col">{t("Account")}</th>
              <th scope="col" className="numeric">
                {t("Share")}
              </th>
              <th scope="col" className="numeric">
                {t("Used in 60 s")}
              </th>
              <th scope="col" className="numeric">
                <abbr
                  title={t(
                    "A neighbour's part of the contended time: it held the device while this slice had work.",
                  )}
                >
                  {t("Delayed this slice in 60 s")}
                </abbr>
              </th>
            </tr>
          </thead>
          <tbody>
            {others.map((other) => (
              <tr key={other.name}>
                <th scope="row">
                  <SliceLink node={node} name={other.name} />
                </th>
                <td>{other.account}</td>
                <td className="numeric">{sharesText(other)}</td>
                <td className="numeric">{percent(achievedOf(other))}</td>
                <td className="numeric">{span(delayedBy(slice, other.name))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

function Processes({ slice }: { slice: Slice }) {
  const t = useT();
  return (
    <Panel title={t("Processes")}>
      {slice.processes.length === 0 ? (
        <p className="muted">{t("No process of the slice uses a device.")}</p>
      ) : (
        <div className="table-scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">PID</th>
                <th scope="col">{t("Library")}</th>
                <th scope="col" className="numeric">
                  {t("Memory")}
                </th>
                <th scope="col">{t("Command")}</th>
              </tr>
            </thead>
            <tbody>
              {slice.processes.map((process) => (
                <tr key={process.pid}>
                  <th scope="row">{process.pid}</th>
                  <td>
                    <Status state={process.attached ? "ok" : "degraded"}>
                      {process.attached ? t("attached") : t("not attached")}
                    </Status>
                  </td>
                  <td className="numeric">{bytes(process.used_bytes)}</td>
                  <td className="mono">{process.command}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function Terms({ slice }: { slice: Slice }) {
  const t = useT();
  return (
    <Panel title={t("Terms over time")}>
      <div className="table-scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">{t("From")}</th>
              <th scope="col">{t("To")}</th>
              <th scope="col" className="numeric">
                {t("Memory")}
              </th>
              <th scope="col" className="numeric">
                {t("Share")}
              </th>
              <th scope="col">{t("Policy")}</th>
            </tr>
          </thead>
          <tbody>
            {slice.history.map((period) => (
              <tr key={period.from_ns}>
                <th scope="row">{clock(period.from_ns)}</th>
                <td className="nowrap">{period.to_ns ? clock(period.to_ns) : t("now")}</td>
                <td className="numeric">{bytes(period.memory_bytes)}</td>
                <td className="numeric">{period.share_bp ? share(period.share_bp) : "-"}</td>
                <td>{period.policy}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function InvoiceLines({ slice, node }: { slice: Slice; node: string }) {
  const t = useT();
  const bill = useQuery({
    queryKey: ["bill", "lines", "month"],
    queryFn: () => get<Bill>("/v1/bills", { lines: true }),
    refetchInterval: 15_000,
  });
  const lines = (bill.data?.lines ?? []).filter(
    (line) =>
      line.pod === slice.name &&
      line.id.startsWith(`${node}.`) &&
      Date.parse(line.to) * 1e6 >= slice.created_ns,
  );
  return (
    <Panel title={t("Invoice lines of this month")}>
      {bill.isPending ? (
        <Loading />
      ) : bill.error ? (
        <ErrorPanel error={bill.error} />
      ) : lines.length === 0 ? (
        <p className="muted">{t("No line yet. Usage records are copied every 5 s.")}</p>
      ) : (
        lines.map((line) => (
          <div key={line.id}>
            <p className="formula">{line.formula}</p>
            <p className="muted">
              {t("{hours} GPU-hours", { hours: amount(line.gpu_hours) })}
              {line.unpriced ? `, ${line.unpriced}` : `, ${amount(line.amount)} ${bill.data.currency}`}
            </p>
          </div>
        ))
      )}
    </Panel>
  );
}

function Events({ slice }: { slice: Slice }) {
  const t = useT();
  return (
    <Panel title={t("Events")}>
      {slice.events.length === 0 ? (
        <p className="muted">{t("No events.")}</p>
      ) : (
        <table>
          <tbody>
            {[...slice.events].reverse().map((event, i) => (
              <tr key={i}>
                <th scope="row">{clock(event.time_ns)}</th>
                <td>{event.text}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

export function SlicePage() {
  const t = useT();
  const parameters = useParams<{ node: string; name: string }>();
  const node = decodeURIComponent(parameters.node);
  const name = decodeURIComponent(parameters.name);
  const [, navigate] = useLocation();
  const { data: slice, error, isPending, dataUpdatedAt } = useSlice(node, name);
  const { mayChangeOf } = useRights();
  const [open, setOpen] = useState<"stop" | "resize" | null>(null);
  const crumbs: [string, string][] = [[t("Slices"), "/slices"]];
  if (isPending) return <Loading />;
  if (!slice)
    return (
      <Page title={name} crumbs={crumbs}>
        <Panel>
          <Empty title={t("This slice does not exist or has ended")}>{error?.message}</Empty>
        </Panel>
      </Page>
    );
  const isDisabled = !mayChangeOf(slice.account) || slice.state === "ended";
  const { memory, compute } = slice.enforcement;
  const asNodeSlice: NodeSlice = { ...slice, node };
  return (
    <Page
      title={slice.name}
      crumbs={crumbs}
      lead={
        <>
          <Status state={slice.state} />
          <span>{slice.ended_because}</span>
        </>
      }
      actions={
        <>
          <Button kind="primary" disabled={isDisabled || slice.exclusive} onClick={() => setOpen("resize")}>
            {t("Resize")}
          </Button>
          <Button kind="danger" disabled={isDisabled} onClick={() => setOpen("stop")}>
            {t("Stop")}
          </Button>
        </>
      }
    >
      {error && <ErrorPanel error={error} />}
      {slice.violations.map((violation) => (
        <Banner
          key={violation.kind}
          tone="warn"
        >{`${violation.kind} (${violation.count}): ${violation.text}`}</Banner>
      ))}
      {slice.xids.length > 0 && (
        <Banner tone="bad">{slice.xids.map((xid) => `Xid ${xid.code}: ${xid.count}`).join(", ")}</Banner>
      )}
      <SliceCharts slice={slice} node={node} updatedAt={dataUpdatedAt} />
      <PartsTable slice={slice} />
      <div className="columns">
        <Panel title={t("Properties")}>
          <Facts
            rows={[
              [t("Account"), slice.account],
              [t("Owner"), `uid ${slice.owner_uid}`],
              [t("Service or job"), <WorkloadLink key="w" slice={slice} />],
              [t("Policy"), slice.policy],
              [t("Latency class"), slice.latency_class],
              [t("Isolation"), slice.isolation],
              [
                t("Memory limit"),
                memory.level === "none"
                  ? `none${memory.reason ? `: ${memory.reason}` : ""}`
                  : t("enforced by the {level}", { level: memory.level }),
              ],
              [
                t("Compute limit"),
                compute.level === "none"
                  ? `none${compute.reason ? `: ${compute.reason}` : ""}`
                  : t("enforced by the {level}", { level: compute.level }),
              ],
              [t("Lifetime"), slice.lifetime],
              [
                t("Memory units"),
                slice.memory_units.count ? `${slice.memory_units.count} × ${slice.memory_units.unit}` : "",
              ],
              [t("Granted"), clock(slice.created_ns)],
              [t("Labels"), <Labels key="l" labels={slice.labels} />],
            ]}
          />
          <p className="mono">{slice.command}</p>
        </Panel>
        <Processes slice={slice} />
      </div>
      <div className="columns">
        <Neighbours slice={slice} node={node} />
        <InvoiceLines slice={slice} node={node} />
      </div>
      <div className="columns">
        <Terms slice={slice} />
        <Events slice={slice} />
      </div>
      {open === "resize" && <ResizeDialog slices={[asNodeSlice]} onClose={() => setOpen(null)} />}
      {open === "stop" && (
        <ConfirmDialog
          title={t("Stop {name}?", { name: slice.name })}
          verb={t("Stop")}
          isDangerous
          act={async () => {
            await call("DELETE", path`/v1/nodes/${node}/slices/${slice.name}`);
            navigate("/slices");
          }}
          onClose={() => setOpen(null)}
        >
          <p>{t("All processes of the slice end. A slice of a service or job is replaced by a new one.")}</p>
        </ConfirmDialog>
      )}
    </Page>
  );
}
