// Events of all objects of the controller, with filters in the address.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useSearchParams } from "wouter";
import { get } from "../api/client";
import type { ObjectEvent } from "../api/types";
import { useT } from "../i18n";
import { Empty, ErrorPanel, Loading, Page, Panel } from "../ui/basics";
import { SelectField } from "../ui/fields";
import { DataTable } from "../ui/table";
import { eventKey, useEventColumns } from "./object-events";

const max_events = 500;

export function EventsPage() {
  const t = useT();
  const [parameters, setParameters] = useSearchParams();
  const columns = useEventColumns(true);
  const events = useQuery({
    queryKey: ["events"],
    queryFn: () => get<{ items: ObjectEvent[] }>("/v1/events", { limit: max_events }),
    refetchInterval: 3000,
  });
  const kind = parameters.get("kind") ?? "";
  const type = parameters.get("type") ?? "";
  const reason = parameters.get("reason") ?? "";
  const all = useMemo(() => events.data?.items ?? [], [events.data]);
  const rows = useMemo(
    () =>
      all.filter(
        (e) => (!kind || e.kind === kind) && (!type || e.type === type) && (!reason || e.reason === reason),
      ),
    [all, kind, type, reason],
  );
  const set = (key: string) => (value: string) =>
    setParameters(
      (old) => {
        const next = new URLSearchParams(old);
        if (value) next.set(key, value);
        else next.delete(key);
        return next;
      },
      { replace: true },
    );
  const choices = (values: string[], every: string) => [
    { value: "", label: every },
    ...[...new Set(values)].sort().map((value) => ({ value, label: value })),
  ];
  return (
    <Page title={t("Events")} lead={t("Who created, changed, scaled and deleted what, and what followed")}>
      <Panel flush>
        {events.isPending ? (
          <Loading />
        ) : events.error && !events.data ? (
          <ErrorPanel error={events.error} />
        ) : (
          <DataTable
            label={t("Events")}
            columns={columns}
            rows={rows}
            rowKey={eventKey}
            hasFilter={all.length > 0}
            sort={{ key: "last", isDescending: true }}
            toolbar={
              <>
                <SelectField
                  label={t("Kind")}
                  value={kind}
                  onChange={set("kind")}
                  options={choices([...all.map((e) => e.kind), ...(kind ? [kind] : [])], t("all"))}
                />
                <SelectField
                  label={t("Type")}
                  value={type}
                  onChange={set("type")}
                  options={choices(["Normal", "Warning"], t("all"))}
                />
                <SelectField
                  label={t("Reason")}
                  value={reason}
                  onChange={set("reason")}
                  options={choices([...all.map((e) => e.reason), ...(reason ? [reason] : [])], t("all"))}
                />
              </>
            }
            empty={
              <Empty title={t("No events")}>
                {kind || type || reason
                  ? t("No event matches the filters.")
                  : t("Events appear when objects change.")}
              </Empty>
            }
          />
        )}
      </Panel>
    </Page>
  );
}
