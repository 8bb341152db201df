// The effect of a form while it is being filled in: the checks of the controller, where each replica would be
// placed or what each device lacks, and the document that will be sent.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { ApiError, postDocument } from "../api/client";
import type { Applied } from "../api/types";
import { useT } from "../i18n";
import { Code, Loading, Panel, Status, Warnings } from "../ui/basics";
import { bytes } from "../ui/format";
import { useDelayed } from "./what-fits";

const delay_ms = 250;

export interface PreviewOptions {
  route?: string;
  dialect?: string;
  isNew?: boolean;
  isEnabled?: boolean;
}

export function usePreview(
  text: string,
  { route = "/v1/documents", dialect = "carve", isNew, isEnabled = true }: PreviewOptions,
) {
  const delayed = useDelayed(text, delay_ms);
  return useQuery({
    queryKey: ["preview", route, dialect, isNew, delayed],
    queryFn: ({ signal }) =>
      postDocument<{ items: Applied[] }>(
        route,
        delayed,
        { dialect, dryRun: true, explain: true, create: isNew ?? false },
        signal,
      ),
    placeholderData: keepPreviousData,
    retry: false,
    refetchInterval: 5000,
    enabled: isEnabled,
  });
}
export type Preview = ReturnType<typeof usePreview>;

function Placement({ items }: { items: Applied[] }) {
  const t = useT();
  const places = items.flatMap((item) => item.placement.map((place) => ({ ...place, kind: item.kind })));
  if (places.length === 0) return <p className="muted">{t("Nothing new needs a place on a device.")}</p>;
  const fits = places.filter((p) => p.node).length;
  return (
    <>
      <p>
        <Status state="placement" tone={fits === places.length ? "ok" : "warn"}>
          {fits === places.length
            ? t("All {n} fit now", { n: places.length })
            : t("{fits} of {n} fit now", { fits, n: places.length })}
        </Status>
      </p>
      <ul className="fits">
        {places.slice(0, 16).map((place) => (
          <li key={place.replica}>
            <span>
              {place.kind === "Job" || place.kind === "RayCluster"
                ? t("slice {n}", { n: place.replica })
                : t("replica {n}", { n: place.replica })}
            </span>
            <span>
              {place.node
                ? `${place.node}, ${t("device {n}", { n: place.devices.join(", ") })}, ${[...new Set(place.memory_bytes.map(bytes))].join(", ")}`
                : place.message}
            </span>
          </li>
        ))}
      </ul>
      {places.length > 16 && <p className="muted">{t("and {n} more", { n: places.length - 16 })}</p>}
    </>
  );
}

export function PreviewPanel({ preview, text, cli }: { preview: Preview; text: string; cli: string }) {
  const t = useT();
  const problem = preview.error instanceof ApiError ? preview.error.problem : null;
  const translation = preview.error ? [] : (preview.data?.items ?? []).flatMap((item) => item.translation);
  return (
    <div className="aside">
      <Panel title={t("Placement now")}>
        {problem ? (
          <>
            <Status state="no" tone="warn">
              {t("The document is not complete")}
            </Status>
            <ul>
              {(problem.errors?.length
                ? problem.errors.map((e) => e.message)
                : [problem.detail, ...problem.reasons]
              ).map((message) => (
                <li key={message}>{message}</li>
              ))}
            </ul>
          </>
        ) : preview.data ? (
          <>
            <Placement items={preview.data.items} />
            <Warnings texts={preview.data.items.flatMap((item) => item.warnings)} />
          </>
        ) : (
          <Loading />
        )}
      </Panel>
      <Panel title={t("Document that will be sent")}>
        <Code>{text}</Code>
        <p className="help">
          {t("The command line stores the same document:")} <code>{cli}</code>
        </p>
        {translation.length > 0 && (
          <details>
            <summary>{t("How each field is translated")}</summary>
            <div className="table-scroll">
              <table>
                <tbody>
                  {translation.map((step) => (
                    <tr key={step.field + step.becomes}>
                      <th scope="row" className="mono">
                        {step.becomes}
                      </th>
                      <td className="mono">{step.result.slice(0, 60)}</td>
                      <td className="muted">{step.rule}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </details>
        )}
      </Panel>
    </div>
  );
}
