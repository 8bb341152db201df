// Events of objects, as a panel of a page and as a page of their own.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { get } from "../api/client";
import type { ObjectEvent } from "../api/types";
import { useT } from "../i18n";
import { Age, Empty, ErrorPanel, Loading, Status } from "../ui/basics";
import { type Column, DataTable } from "../ui/table";
import { ObjectLink } from "./amounts";

const poll_ms = 3000;

export function useEventColumns(hasObject: boolean): Column<ObjectEvent>[] {
  const t = useT();
  return useMemo(
    () => [
      {
        key: "last",
        header: t("Last"),
        cell: (e) => (
          <span className="nowrap">
            <Age since={e.lastAt} />
          </span>
        ),
        sortBy: (e) => e.lastAt,
      },
      {
        key: "type",
        header: t("Type"),
        cell: (e) => (
          <Status state={e.type} tone={e.type === "Warning" ? "warn" : "idle"}>
            {e.type === "Warning" ? t("Warning") : t("Normal")}
          </Status>
        ),
        sortBy: (e) => e.type,
      },
      ...(hasObject
        ? [
            {
              key: "object",
              header: t("Object"),
              cell: (e: ObjectEvent) => (
                <ObjectLink kind={e.kind} name={e.name}>{`${e.kind.toLowerCase()}/${e.name}`}</ObjectLink>
              ),
              sortBy: (e: ObjectEvent) => `${e.kind} ${e.name}`,
              text: (e: ObjectEvent) => `${e.kind.toLowerCase()}/${e.name}`,
            },
          ]
        : []),
      {
        key: "reason",
        header: t("Reason"),
        cell: (e) => e.reason,
        sortBy: (e) => e.reason,
        text: (e) => e.reason,
      },
      {
        key: "message",
        header: t("Message"),
        cell: (e) => <div className="cell-message">{e.message}</div>,
        text: (e) => e.message,
      },
      {
        key: "caller",
        header: t("By"),
        cell: (e) => e.caller || "-",
        sortBy: (e) => e.caller,
        text: (e) => e.caller,
      },
      { key: "count", header: t("Count"), numeric: true, cell: (e) => e.count, sortBy: (e) => e.count },
    ],
    [t, hasObject],
  );
}

export const eventKey = (e: ObjectEvent) => `${e.kind}/${e.namespace}/${e.name}/${e.uid}/${e.reason}`;

export function ObjectEvents({ target }: { target: string }) {
  const t = useT();
  const columns = useEventColumns(false);
  const events = useQuery({
    queryKey: ["events", target],
    queryFn: () => get<{ items: ObjectEvent[] }>(target),
    refetchInterval: poll_ms,
  });
  if (events.isPending) return <Loading />;
  if (events.error && !events.data) return <ErrorPanel error={events.error} />;
  return (
    <DataTable
      label={t("Events")}
      columns={columns}
      rows={events.data?.items ?? []}
      rowKey={eventKey}
      sort={{ key: "last", isDescending: true }}
      empty={<Empty title={t("No events")}>{t("Events appear when the object changes.")}</Empty>}
    />
  );
}
