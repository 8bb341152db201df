// Revisions of a service or an application, their differences, and the return to one.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { get, post } from "../api/client";
import { useRights } from "../api/session";
import type { Revision, Workload } from "../api/types";
import { useT } from "../i18n";
import { Button, ErrorPanel, json, Loading, Panel } from "../ui/basics";
import { ConfirmDialog, useAction } from "../ui/dialog";
import { Diff } from "../ui/diff";
import { clock } from "../ui/format";
import { verbTarget } from "./services";

const revisionText = (r: Revision) =>
  json({ gpu: r.gpu, command: r.command, image: r.image, restartedAt: r.restartedAt });

export function Revisions({ workload }: { workload: Workload }) {
  const t = useT();
  const { mayChangeOf } = useRights();
  const revisions = useQuery({
    queryKey: [
      "revisions",
      workload.kind,
      workload.metadata.name,
      workload.status.revision,
      workload.metadata.generation,
    ],
    queryFn: () => get<{ items: Revision[] }>(verbTarget(workload, "revisions")),
  });
  const [compared, setCompared] = useState<number | null>(null);
  const [undone, setUndone] = useState<number | null>(null);
  const { run } = useAction();
  const items = useMemo(
    () => [...(revisions.data?.items ?? [])].sort((a, b) => b.revision - a.revision),
    [revisions.data],
  );
  if (revisions.isPending) return <Loading />;
  if (revisions.error) return <ErrorPanel error={revisions.error} />;
  const newest = items[0];
  const left = items.find((r) => r.revision === compared) ?? items[1];
  return (
    <div className="stack">
      <Panel flush>
        <div className="table-scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">{t("Revision")}</th>
                <th scope="col">{t("Created")}</th>
                <th scope="col">GPU</th>
                <th scope="col">{t("Program")}</th>
                <th scope="col">{t("Actions")}</th>
              </tr>
            </thead>
            <tbody>
              {items.map((r) => (
                <tr key={r.revision}>
                  <th scope="row">
                    {r.revision} {r === newest && <span className="muted">({t("current")})</span>}
                  </th>
                  <td className="nowrap">{clock(r.createdAt)}</td>
                  <td>
                    {r.gpu
                      ? `${r.gpu.memory || (r.gpu.exclusive ? t("whole device") : "-")} ${r.gpu.share}`
                      : "-"}
                  </td>
                  <td className="mono">{(r.image ? [r.image] : r.command).join(" ").slice(0, 80)}</td>
                  <td>
                    {r !== newest && (
                      <span className="actions">
                        <Button kind="quiet" onClick={() => setCompared(r.revision)}>
                          {t("Compare")}
                        </Button>
                        <Button
                          kind="quiet"
                          disabled={!mayChangeOf(workload.metadata.account)}
                          onClick={() => setUndone(r.revision)}
                        >
                          {t("Return to it")}
                        </Button>
                      </span>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Panel>
      {left && newest && left !== newest && (
        <Panel title={t("From revision {a} to revision {b}", { a: left.revision, b: newest.revision })}>
          <Diff label={t("Difference")} before={revisionText(left)} after={revisionText(newest)} />
        </Panel>
      )}
      {undone !== null && (
        <ConfirmDialog
          title={t("Return to revision {n}?", { n: undone })}
          verb={t("Return to it")}
          act={() =>
            run(
              () => post(verbTarget(workload, "undo"), { revision: undone }),
              t("Revision {n} is rolled out again", { n: undone }),
            )
          }
          onClose={() => setUndone(null)}
        >
          <p>
            {t(
              "A new revision with the spec of revision {n} replaces the replicas one by one. The number of replicas stays.",
              { n: undone },
            )}
          </p>
        </ConfirmDialog>
      )}
    </div>
  );
}
