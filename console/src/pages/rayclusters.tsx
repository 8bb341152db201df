// Ray clusters: the list, and one cluster with its head, workers, logs and events.
import { useMemo, useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { call, path } from "../api/client";
import { useRights } from "../api/session";
import type { RayCluster } from "../api/types";
import { useT } from "../i18n";
import { useRayClusters } from "../live/objects";
import {
  Age,
  Banner,
  Button,
  Empty,
  Facts,
  LinkButton,
  Page,
  Panel,
  Status,
  Tabs,
  Warnings,
} from "../ui/basics";
import { ConfirmDialog } from "../ui/dialog";
import { TextField } from "../ui/fields";
import { amount, clock } from "../ui/format";
import { LogView } from "../ui/logs";
import { type Column, DataTable } from "../ui/table";
import { targetOf } from "./edit-document";
import { DashboardFacts, PodsTable, podOptions } from "./jobs";
import { NotFound } from "./not-found";
import { ObjectEvents } from "./object-events";

const hrefOf = (cluster: RayCluster) => `/rayclusters/${encodeURIComponent(cluster.metadata.name)}`;
const workersText = (cluster: RayCluster) =>
  cluster.spec.workers
    .map((g) =>
      g.mgpuMemory ? `${g.replicas} × ${g.mgpuCore}%, ${g.mgpuMemory} MiB` : `${g.replicas} × GPU`,
    )
    .join("; ");

export function RayClustersPage() {
  const t = useT();
  const clusters = useRayClusters();
  const { mayChange } = useRights();
  const columns = useMemo<Column<RayCluster>[]>(
    () => [
      {
        key: "name",
        header: t("Name"),
        cell: (c) => <Link href={hrefOf(c)}>{c.metadata.name}</Link>,
        sortBy: (c) => c.metadata.name,
        text: (c) => c.metadata.name,
      },
      {
        key: "phase",
        header: t("Phase"),
        cell: (c) => <Status state={c.status.phase} />,
        sortBy: (c) => c.status.phase,
      },
      {
        key: "queue",
        header: t("Queue"),
        cell: (c) => <Link href={`/queues/${encodeURIComponent(c.spec.queue)}`}>{c.spec.queue}</Link>,
        sortBy: (c) => c.spec.queue,
      },
      { key: "workers", header: t("Workers"), cell: workersText },
      {
        key: "account",
        header: t("Account"),
        cell: (c) => c.metadata.account,
        sortBy: (c) => c.metadata.account,
        text: (c) => c.metadata.account,
      },
      {
        key: "age",
        header: t("Age"),
        numeric: true,
        cell: (c) => <Age since={c.metadata.createdAt} />,
        sortBy: (c) => c.metadata.createdAt,
      },
      {
        key: "reason",
        header: t("Reason"),
        cell: (c) => <div className="cell-message">{c.status.reason || "-"}</div>,
      },
    ],
    [t],
  );
  const create = mayChange && (
    <LinkButton href="/rayclusters/new" kind="primary">
      {t("Create Ray cluster")}
    </LinkButton>
  );
  return (
    <Page title={t("Ray clusters")} actions={create}>
      <Panel flush>
        <DataTable
          label={t("Ray clusters")}
          columns={columns}
          rows={clusters}
          rowKey={(c) => c.metadata.name}
          empty={
            <Empty title={t("No Ray clusters")} action={create}>
              {t("A Ray cluster that stays: a head without a GPU, and workers in slices of their own.")}
            </Empty>
          }
        />
      </Panel>
    </Page>
  );
}

function WorkersDialog({ cluster, onClose }: { cluster: RayCluster; onClose: () => void }) {
  const t = useT();
  const [counts, setCounts] = useState(cluster.spec.workers.map((g) => String(g.replicas)));
  return (
    <ConfirmDialog
      title={t("Workers of {name}", { name: cluster.metadata.name })}
      verb={t("Save")}
      act={() =>
        call("PATCH", targetOf(cluster), {
          body: {
            spec: { workers: cluster.spec.workers.map((g, i) => ({ ...g, replicas: Number(counts[i]) })) },
          },
        })
      }
      onClose={onClose}
    >
      {cluster.spec.workers.map((group, i) => (
        <TextField
          key={i}
          label={
            group.mgpuMemory
              ? t("Workers with {core}% and {memory} MiB", { core: group.mgpuCore, memory: group.mgpuMemory })
              : t("Workers with a whole device")
          }
          kind="number"
          value={counts[i]!}
          onChange={(value) => setCounts(counts.map((c, j) => (i === j ? value : c)))}
        />
      ))}
    </ConfirmDialog>
  );
}

export function RayClusterPage() {
  const t = useT();
  const [, navigate] = useLocation();
  const { name = "", tab = "" } = useParams<{ name: string; tab: string }>();
  const cluster = useRayClusters().find((c) => c.metadata.name === decodeURIComponent(name));
  const { mayChangeOf } = useRights();
  const [open, setOpen] = useState<"workers" | "delete" | null>(null);
  if (!cluster) return <NotFound what={`raycluster/${name}`} />;
  const href = hrefOf(cluster);
  const { status, spec } = cluster;
  const isDisabled = !mayChangeOf(cluster.metadata.account);
  const tabs = [
    { label: t("Overview"), id: "" },
    { label: t("Logs"), id: "logs" },
    { label: t("Events"), id: "events" },
  ].map(({ label, id }) => ({ label, href: id ? `${href}/${id}` : href, isCurrent: tab === id }));
  return (
    <Page
      title={cluster.metadata.name}
      crumbs={[[t("Ray clusters"), "/rayclusters"]]}
      lead={<Status state={status.phase} />}
      actions={
        <>
          <Button kind="primary" disabled={isDisabled} onClick={() => setOpen("workers")}>
            {t("Change workers")}
          </Button>
          <Button kind="danger" disabled={isDisabled} onClick={() => setOpen("delete")}>
            {t("Delete")}
          </Button>
        </>
      }
    >
      <Tabs tabs={tabs} />
      <Warnings texts={status.warnings} />
      {tab === "" && (
        <div className="stack">
          {status.reason && <Banner tone="busy">{status.reason}</Banner>}
          <Panel title={t("Programs")} flush>
            <PodsTable pods={status.pods} reason={status.reason} />
          </Panel>
          <DashboardFacts object={cluster} />
          <Panel title={t("Properties")}>
            <Facts
              rows={[
                [
                  t("Queue"),
                  <Link key="q" href={`/queues/${encodeURIComponent(spec.queue)}`}>
                    {spec.queue}
                  </Link>,
                ],
                [t("Compute group"), spec.computeGroup],
                [t("Workers"), workersText(cluster)],
                [
                  t("Folder of the program ray"),
                  <span key="h" className="mono">
                    {spec.engineHome}
                  </span>,
                ],
                [t("GPU-hours"), status.gpuHours ? amount(status.gpuHours) : ""],
                [t("Account"), cluster.metadata.account],
                [t("Created"), clock(cluster.metadata.createdAt)],
              ]}
            />
          </Panel>
        </div>
      )}
      {tab === "logs" && (
        <Panel flush>
          <LogView
            target={path`/v1/rayclusters/${cluster.metadata.name}/logs`}
            pods={podOptions(status.pods)}
          />
        </Panel>
      )}
      {tab === "events" && (
        <Panel flush>
          <ObjectEvents target={path`/v1/rayclusters/${cluster.metadata.name}/events`} />
        </Panel>
      )}
      {open === "workers" && <WorkersDialog cluster={cluster} onClose={() => setOpen(null)} />}
      {open === "delete" && (
        <ConfirmDialog
          title={t("Delete {name}?", { name: cluster.metadata.name })}
          verb={t("Delete")}
          isDangerous
          act={async () => {
            await call("DELETE", targetOf(cluster));
            navigate("/rayclusters");
          }}
          onClose={() => setOpen(null)}
        >
          <p>{t("Its programs end, and its logs are removed.")}</p>
        </ConfirmDialog>
      )}
    </Page>
  );
}
