import { useMemo, useState } from "react";
import { Link } from "wouter";
import { post } from "../api/client";
import { useRights } from "../api/session";
import { path_of, type Workload } from "../api/types";
import { useT } from "../i18n";
import { useObjects } from "../live/objects";
import { Age, Button, Empty, LinkButton, Page, Panel, Status } from "../ui/basics";
import { ConfirmDialog } from "../ui/dialog";
import { type Column, DataTable, type Selection } from "../ui/table";

export type WorkloadKind = "Service" | "Application";
export const folder = (kind: WorkloadKind) => `/${path_of[kind]}`;
export const hrefOf = (w: Workload) =>
  `${folder(w.kind as WorkloadKind)}/${encodeURIComponent(w.metadata.name)}`;
export const verbTarget = (w: Workload, verb: string) =>
  `/v1/${path_of[w.kind as WorkloadKind]}/${encodeURIComponent(w.metadata.name)}/${verb}?namespace=${encodeURIComponent(w.metadata.namespace)}`;
export const shownName = (w: Workload) => w.metadata.annotations["eas.carve.dev/name"] ?? w.metadata.name;

function useColumns(): Column<Workload>[] {
  const t = useT();
  return useMemo(
    () => [
      {
        key: "name",
        header: t("Name"),
        cell: (w) => <Link href={hrefOf(w)}>{shownName(w)}</Link>,
        sortBy: (w) => w.metadata.name,
        text: (w) => `${w.metadata.name} ${shownName(w)}`,
      },
      {
        key: "status",
        header: t("Status"),
        cell: (w) => <Status state={w.status.phase} />,
        sortBy: (w) => w.status.phase,
        text: (w) => w.status.phase,
      },
      {
        key: "ready",
        header: t("Ready"),
        numeric: true,
        cell: (w) => `${w.status.readyReplicas}/${w.status.desiredReplicas}`,
        sortBy: (w) => w.status.readyReplicas,
      },
      { key: "gpu", header: "GPU", cell: (w) => w.status.gpu || "-", sortBy: (w) => w.status.memoryBytes },
      {
        key: "revision",
        header: t("Revision"),
        numeric: true,
        cell: (w) => w.status.revision,
        sortBy: (w) => w.status.revision,
      },
      {
        key: "restarts",
        header: t("Restarts"),
        numeric: true,
        cell: (w) => w.status.restarts,
        sortBy: (w) => w.status.restarts,
      },
      {
        key: "endpoint",
        header: t("Endpoint"),
        cell: (w) => (w.status.endpoint ? <span className="mono nowrap">{w.status.endpoint}</span> : "-"),
        text: (w) => w.status.endpoint,
      },
      {
        key: "account",
        header: t("Account"),
        cell: (w) => w.metadata.account,
        sortBy: (w) => w.metadata.account,
        text: (w) => w.metadata.account,
      },
      {
        key: "age",
        header: t("Age"),
        numeric: true,
        cell: (w) => <Age since={w.metadata.createdAt} />,
        sortBy: (w) => w.metadata.createdAt,
      },
    ],
    [t],
  );
}

function BulkBar({ chosen, clear }: { chosen: Workload[]; clear: () => void }) {
  const t = useT();
  const [verb, setVerb] = useState<"stop" | "start" | "restart" | null>(null);
  if (chosen.length === 0) return null;
  const titles = {
    stop: t("Stop {n} objects?", { n: chosen.length }),
    start: t("Start {n} objects?", { n: chosen.length }),
    restart: t("Restart {n} objects?", { n: chosen.length }),
  };
  const names = { stop: t("Stop"), start: t("Start"), restart: t("Restart") };
  return (
    <div className="bulk">
      <span className="muted">{t("{n} selected", { n: chosen.length })}</span>
      {(["stop", "start", "restart"] as const).map((name) => (
        <Button key={name} onClick={() => setVerb(name)}>
          {names[name]}
        </Button>
      ))}
      {verb && (
        <ConfirmDialog
          title={titles[verb]}
          verb={names[verb]}
          isDangerous={verb === "stop"}
          act={async () => {
            for (const w of chosen) await post(verbTarget(w, verb));
            clear();
          }}
          onClose={() => setVerb(null)}
        >
          <ul>
            {chosen.map((w) => (
              <li key={w.metadata.uid}>{`${w.kind.toLowerCase()}/${w.metadata.name}`}</li>
            ))}
          </ul>
        </ConfirmDialog>
      )}
    </div>
  );
}

function WorkloadsPage({ kind }: { kind: WorkloadKind }) {
  const t = useT();
  const rows = useObjects(kind) as Workload[];
  const columns = useColumns();
  const { mayChange } = useRights();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const selection: Selection | undefined = mayChange ? { selected, change: setSelected } : undefined;
  const create = mayChange && (
    <LinkButton href={`${folder(kind)}/new`} kind="primary">
      {kind === "Service" ? t("Create service") : t("Create application")}
    </LinkButton>
  );
  return (
    <Page title={kind === "Service" ? t("Services") : t("Applications")} actions={create}>
      <Panel flush>
        <DataTable
          label={kind === "Service" ? t("Services") : t("Applications")}
          columns={columns}
          rows={rows}
          rowKey={(w) => `${w.metadata.namespace}/${w.metadata.name}`}
          {...(selection && { selection })}
          toolbar={
            <BulkBar
              chosen={rows.filter((w) => selected.has(`${w.metadata.namespace}/${w.metadata.name}`))}
              clear={() => setSelected(new Set())}
            />
          }
          empty={
            <Empty
              title={kind === "Service" ? t("No services yet") : t("No applications yet")}
              action={create}
            >
              {kind === "Service"
                ? t(
                    "A service is a set of identical replicas of one program, each with its own slice of a GPU, behind one address.",
                  )
                : t("An application is a service in the form of Volcengine's AI applications.")}
            </Empty>
          }
        />
      </Panel>
    </Page>
  );
}
export const ServicesPage = () => <WorkloadsPage kind="Service" />;
export const ApplicationsPage = () => <WorkloadsPage kind="Application" />;
