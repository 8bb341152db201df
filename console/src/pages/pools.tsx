// Node pools: the list, and one pool with its labels, nodes, drift and slicing checks.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { call, get, path } from "../api/client";
import { useRights } from "../api/session";
import type { Pool, Slicing } from "../api/types";
import { useT } from "../i18n";
import { useNodes, useObject, useObjects } from "../live/objects";
import { Banner, Button, Empty, Facts, Labels, LinkButton, Page, Panel, Status, Tag } from "../ui/basics";
import { ConfirmDialog } from "../ui/dialog";
import { type Column, DataTable } from "../ui/table";
import { stateOf } from "./nodes";
import { NotFound } from "./not-found";
import { ObjectEvents } from "./object-events";

const hrefOf = (pool: Pool) => `/pools/${encodeURIComponent(pool.metadata.name)}`;

export function PoolsPage() {
  const t = useT();
  const pools = useObjects("Pool");
  const { mayOperate } = useRights();
  const columns = useMemo<Column<Pool>[]>(
    () => [
      {
        key: "name",
        header: t("Name"),
        cell: (p) => <Link href={hrefOf(p)}>{p.metadata.name}</Link>,
        sortBy: (p) => p.metadata.name,
        text: (p) => p.metadata.name,
      },
      {
        key: "type",
        header: t("Type"),
        cell: (p) => p.spec.type,
        sortBy: (p) => p.spec.type,
        text: (p) => p.spec.type,
      },
      {
        key: "nodes",
        header: t("Nodes"),
        numeric: true,
        cell: (p) => p.status.nodes,
        sortBy: (p) => p.status.nodes,
      },
      { key: "gpu", header: "GPU", numeric: true, cell: (p) => p.status.gpus, sortBy: (p) => p.status.gpus },
      {
        key: "running",
        header: t("Running"),
        numeric: true,
        cell: (p) => p.status.runningGpuNodes,
        sortBy: (p) => p.status.runningGpuNodes,
      },
      {
        key: "sync",
        header: t("Label synchronisation"),
        cell: (p) => (p.spec.labelSync ? t("on") : t("off")),
      },
      {
        key: "drift",
        header: t("Drift"),
        cell: (p) =>
          p.status.drift.length ? (
            <Status state="drift" tone="warn">
              {p.status.drift.length}
            </Status>
          ) : (
            "-"
          ),
        sortBy: (p) => p.status.drift.length,
      },
      {
        key: "slicing",
        header: t("GPU Slicing"),
        cell: (p) => (
          <Status state="slicing" tone={p.status.slicing.available ? "ok" : "warn"}>
            {p.status.slicing.available ? t("available") : p.status.slicing.failed}
          </Status>
        ),
      },
    ],
    [t],
  );
  const create = mayOperate && (
    <LinkButton href="/pools/new" kind="primary">
      {t("Create node pool")}
    </LinkButton>
  );
  return (
    <Page title={t("Node pools")} actions={create}>
      <Panel flush>
        <DataTable
          label={t("Node pools")}
          columns={columns}
          rows={pools}
          rowKey={(p) => p.metadata.name}
          empty={
            <Empty title={t("No node pools")} action={create}>
              {t(
                "A node pool is a set of nodes that share labels and taints. Without pools, all nodes form one group.",
              )}
            </Empty>
          }
        />
      </Panel>
    </Page>
  );
}

export function PoolPage() {
  const t = useT();
  const [, navigate] = useLocation();
  const { name = "" } = useParams<{ name: string }>();
  const pool = useObject("Pool", decodeURIComponent(name));
  const nodes = useNodes().filter((n) => n.spec.pool === pool?.metadata.name);
  const { mayOperate } = useRights();
  const [isDeleting, setDeleting] = useState(false);
  const slicing = useQuery({
    queryKey: ["slicing", pool?.metadata.name],
    queryFn: () => get<Slicing>(path`/v1/pools/${pool!.metadata.name}/slicing`),
    enabled: pool !== undefined,
    refetchInterval: 3000,
  });
  if (!pool) return <NotFound what={`pool/${name}`} />;
  const checks = (slicing.data ?? pool.status.slicing).checks;
  return (
    <Page
      title={pool.metadata.name}
      crumbs={[[t("Node pools"), "/pools"]]}
      lead={
        <Status state="slicing" tone={pool.status.slicing.available ? "ok" : "warn"}>
          {pool.status.slicing.available ? t("GPU slicing is available") : t("GPU slicing is not available")}
        </Status>
      }
      actions={
        <>
          {mayOperate && (
            <LinkButton href={`${hrefOf(pool)}/edit`} kind="primary">
              {t("Edit")}
            </LinkButton>
          )}
          <Button disabled={!mayOperate} onClick={() => setDeleting(true)}>
            {t("Delete")}
          </Button>
        </>
      }
    >
      {pool.status.drift.length > 0 && (
        <Panel title={t("Drift: labels of nodes that differ from the pool's")}>
          <p className="muted">
            {t(
              "Label synchronisation is off, or the nodes are not reachable. Nodes keep their labels; slices follow the labels of their node.",
            )}
          </p>
          <table>
            <thead>
              <tr>
                <th scope="col">{t("Node")}</th>
                <th scope="col">{t("Label")}</th>
                <th scope="col">{t("Pool")}</th>
                <th scope="col">{t("Node")}</th>
              </tr>
            </thead>
            <tbody>
              {pool.status.drift.map((d) => (
                <tr key={d.node + d.label}>
                  <th scope="row">
                    <Link href={`/nodes/${encodeURIComponent(d.node)}`}>{d.node}</Link>
                  </th>
                  <td className="mono">{d.label}</td>
                  <td className="mono">{d.poolValue}</td>
                  <td className="mono">{d.nodeValue || "-"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Panel>
      )}
      <div className="columns">
        <Panel title={t("Properties")}>
          <Facts
            rows={[
              [t("Type"), pool.spec.type],
              [t("Label synchronisation"), pool.spec.labelSync ? t("on") : t("off")],
              [t("Sharing"), pool.spec.sharing ? t("on") : t("off")],
              [t("Best effort"), pool.spec.bestEffort === "refuse" ? t("refused") : t("allowed")],
              [t("Labels"), <Labels key="l" labels={pool.spec.labels} />],
              [
                t("Taints"),
                pool.spec.taints.length ? (
                  <span key="t" className="tags">
                    {pool.spec.taints.map((taint) => (
                      <Tag key={taint.key}>{`${taint.key}=${taint.value}:${taint.effect}`}</Tag>
                    ))}
                  </span>
                ) : (
                  ""
                ),
              ],
            ]}
          />
        </Panel>
        <Panel title={t("Why is the GPU slicing option missing?")}>
          <ol className="checks">
            {checks.map((check) => (
              <li key={check.name}>
                <Status state={check.name} tone={check.ok ? "ok" : "bad"}>
                  {check.ok ? t("ok") : t("failed")}
                </Status>
                <span className="mono">{check.name}</span>
                {check.message && <span className="help">{check.message}</span>}
              </li>
            ))}
          </ol>
          {pool.status.slicing.easProblem && <Banner tone="warn">{pool.status.slicing.easProblem}</Banner>}
        </Panel>
      </div>
      <Panel title={t("Nodes")}>
        {nodes.length === 0 ? (
          <Empty title={t("No node is in this pool")}>
            {t("Open a node and choose More > Change node pool, or run")}{" "}
            <code>{`carve node pool NODE ${pool.metadata.name}`}</code>.
          </Empty>
        ) : (
          <table>
            <thead>
              <tr>
                <th scope="col">{t("Name")}</th>
                <th scope="col">{t("State")}</th>
                <th scope="col" className="numeric">
                  GPU
                </th>
                <th scope="col">{t("Instance type")}</th>
              </tr>
            </thead>
            <tbody>
              {nodes.map((node) => (
                <tr key={node.metadata.name}>
                  <th scope="row">
                    <Link href={`/nodes/${encodeURIComponent(node.metadata.name)}`}>
                      {node.metadata.name}
                    </Link>
                  </th>
                  <td>
                    <Status state={stateOf(node)} />
                  </td>
                  <td className="numeric">{node.status.gpus}</td>
                  <td>{node.spec.instanceType || "-"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Panel>
      <Panel title={t("Events")} flush>
        <ObjectEvents target={path`/v1/pools/${pool.metadata.name}/events`} />
      </Panel>
      {isDeleting && (
        <ConfirmDialog
          title={t("Delete {name}?", { name: pool.metadata.name })}
          verb={t("Delete")}
          isDangerous
          act={async () => {
            await call("DELETE", path`/v1/pools/${pool.metadata.name}`);
            navigate("/pools");
          }}
          onClose={() => setDeleting(false)}
        >
          <p>{t("A pool with nodes is not deleted.")}</p>
        </ConfirmDialog>
      )}
    </Page>
  );
}
