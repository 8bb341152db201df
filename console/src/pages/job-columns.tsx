// The columns of tables of jobs.
import { useMemo } from "react";
import { Link } from "wouter";
import type { Job } from "../api/types";
import { useT } from "../i18n";
import { Age, Status } from "../ui/basics";
import { amount } from "../ui/format";
import type { Column } from "../ui/table";

export const jobHref = (job: Job) => `/jobs/${encodeURIComponent(job.metadata.name)}`;

export function useJobColumns(hasQueue: boolean): Column<Job>[] {
  const t = useT();
  return useMemo(
    () => [
      {
        key: "name",
        header: t("Name"),
        cell: (j) => <Link href={jobHref(j)}>{j.metadata.name}</Link>,
        sortBy: (j) => j.metadata.name,
        text: (j) => j.metadata.name,
      },
      {
        key: "position",
        header: t("Position"),
        numeric: true,
        cell: (j) => j.status.position || "-",
        sortBy: (j) => j.status.position || 1e9,
      },
      {
        key: "phase",
        header: t("Phase"),
        cell: (j) => <Status state={j.status.phase} />,
        sortBy: (j) => j.status.phase,
        text: (j) => j.status.phase,
      },
      {
        key: "engine",
        header: t("Engine"),
        cell: (j) => j.spec.engine,
        sortBy: (j) => j.spec.engine,
        text: (j) => j.spec.engine,
      },
      ...(hasQueue
        ? [
            {
              key: "queue",
              header: t("Queue"),
              cell: (j: Job) => (
                <Link href={`/queues/${encodeURIComponent(j.spec.queue)}`}>{j.spec.queue}</Link>
              ),
              sortBy: (j: Job) => j.spec.queue,
              text: (j: Job) => j.spec.queue,
            },
          ]
        : []),
      { key: "gpu", header: "GPU", cell: (j) => <span className="nowrap">{j.status.gpu || "-"}</span> },
      {
        key: "slices",
        header: t("Slices"),
        numeric: true,
        cell: (j) => j.status.slices,
        sortBy: (j) => j.status.slices,
      },
      {
        key: "account",
        header: t("Account"),
        cell: (j) => j.metadata.account,
        sortBy: (j) => j.metadata.account,
        text: (j) => j.metadata.account,
      },
      {
        key: "hours",
        header: t("GPU-hours"),
        numeric: true,
        cell: (j) => (j.status.gpuHours ? amount(j.status.gpuHours) : "-"),
        sortBy: (j) => Number(j.status.gpuHours),
      },
      {
        key: "submitted",
        header: t("Submitted"),
        numeric: true,
        cell: (j) => <Age since={j.status.submittedAt} />,
        sortBy: (j) => j.status.submittedAt,
      },
      {
        key: "reason",
        header: t("Reason"),
        cell: (j) => <div className="cell-message">{j.status.reason || "-"}</div>,
        text: (j) => j.status.reason,
      },
    ],
    [t, hasQueue],
  );
}
