// Change of the memory and share of slices. The preview is a dry run by each slice's agent.
import { useQueries } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { call, path } from "../api/client";
import { useT } from "../i18n";
import type { NodeSlice } from "../live/objects";
import { Banner, Button, Status } from "../ui/basics";
import { Dialog, messageOf } from "../ui/dialog";
import { SelectField, TextField } from "../ui/fields";
import { bytes, parseBytes, parseShare, share } from "../ui/format";
import { quotaOf, sharesText, workloadOf } from "./amounts";

export interface Change {
  memory_bytes?: number;
  share_bp?: number;
  policy?: string;
}

const max_previews = 64; // Further slices are checked when the change is sent.
const preview_poll_ms = 3000;

// Asks the agents whether they would accept the changes. The answers have the order of the slices: an empty text, the
// reason of a refusal, or undefined while there is no answer.
function usePreviews(slices: NodeSlice[], changes: Change[]): (string | undefined)[] {
  return useQueries({
    queries: slices.map((slice, i) => ({
      queryKey: ["resize", slice.node, slice.name, changes[i]],
      queryFn: () =>
        call("PATCH", path`/v1/nodes/${slice.node}/slices/${slice.name}`, {
          body: changes[i],
          query: { dryRun: true },
        }).then(
          () => "",
          (error: unknown) => messageOf(error),
        ),
      enabled: i < max_previews && Object.keys(changes[i] ?? {}).length > 0,
      refetchInterval: preview_poll_ms,
    })),
    combine: (answers) => answers.map((answer) => answer.data),
  });
}

export function ResizeDialog({ slices, onClose }: { slices: NodeSlice[]; onClose: () => void }) {
  const t = useT();
  const single = slices.length === 1 ? slices[0]! : null;
  const [memory, setMemory] = useState(single ? bytes(single.parts[0]!.quota_bytes).replace(" ", "") : "");
  const [compute, setCompute] = useState(single?.parts[0]?.share_bp ? share(single.parts[0].share_bp) : "");
  const [policy, setPolicy] = useState("");
  const [results, setResults] = useState<Record<string, string> | null>(null);
  const [isBusy, setBusy] = useState(false);
  const memoryBytes = memory.trim() ? parseBytes(memory) : undefined;
  const shareBp = compute.trim() ? parseShare(compute) : undefined;
  const isInvalid = memoryBytes === null || shareBp === null;
  const changeOf = (slice: NodeSlice): Change => ({
    ...(typeof memoryBytes === "number" && slice.parts.some((p) => p.quota_bytes !== memoryBytes)
      ? { memory_bytes: memoryBytes }
      : {}),
    ...(typeof shareBp === "number" && slice.parts.some((p) => p.share_bp !== shareBp)
      ? { share_bp: shareBp }
      : {}),
    ...(policy && policy !== slice.policy ? { policy } : {}),
  });
  const changed = slices.filter((slice) => Object.keys(changeOf(slice)).length > 0);
  const previews = usePreviews(slices, useDeferredValue(slices.map(changeOf)));
  const managed = slices.filter((slice) => ["service", "application"].includes(workloadOf(slice).kind));
  const send = async () => {
    setBusy(true);
    const found: Record<string, string> = {};
    for (const slice of changed)
      found[slice.name] = await call("PATCH", path`/v1/nodes/${slice.node}/slices/${slice.name}`, {
        body: changeOf(slice),
      }).then(
        () => "",
        (error: unknown) => messageOf(error),
      );
    setBusy(false);
    if (Object.values(found).every((message) => message === "")) onClose();
    else setResults(found);
  };
  return (
    <Dialog
      title={
        single ? t("Resize {name}", { name: single.name }) : t("Resize {n} slices", { n: slices.length })
      }
      onClose={onClose}
    >
      <div className="dialog-body">
        {managed.length > 0 && (
          <Banner tone="warn">
            {t(
              "Slices of services get the size of their service again at the next start: {names}. Update the service to change it for good.",
              { names: managed.map((s) => s.name).join(", ") },
            )}
          </Banner>
        )}
        <div className="row-fields">
          <TextField
            label={t("Memory per device")}
            value={memory}
            onChange={setMemory}
            help={
              memoryBytes === null
                ? t("write an amount such as 4GiB or 4096MiB")
                : t("such as 4GiB; empty to keep it")
            }
          />
          <TextField
            label={t("Compute share")}
            value={compute}
            onChange={setCompute}
            help={shareBp === null ? t("write a share such as 30%") : t("such as 30%; empty to keep it")}
          />
        </div>
        <SelectField
          label={t("Policy")}
          value={policy}
          onChange={setPolicy}
          options={[
            { value: "", label: t("unchanged") },
            ...["fixed-share", "guaranteed-burst-share", "native-burst-share"].map((p) => ({
              value: p,
              label: p,
            })),
          ]}
        />
        <table>
          <thead>
            <tr>
              <th scope="col">{t("Slice")}</th>
              <th scope="col">{t("Now")}</th>
              <th scope="col">{t("Preview")}</th>
            </tr>
          </thead>
          <tbody>
            {slices.map((slice, i) => {
              const change = changeOf(slice);
              const refusal = previews[i];
              const result = results?.[slice.name];
              return (
                <tr key={slice.node + slice.name}>
                  <th scope="row">{slice.name}</th>
                  <td>{`${bytes(quotaOf(slice))}, ${sharesText(slice)}`}</td>
                  <td>
                    {result !== undefined ? (
                      <Status state="result" tone={result ? "bad" : "ok"}>
                        {result || t("changed")}
                      </Status>
                    ) : Object.keys(change).length === 0 ? (
                      <span className="muted">{t("unchanged")}</span>
                    ) : refusal === undefined ? (
                      <span className="muted">{t("being checked")}</span>
                    ) : refusal ? (
                      <div>
                        <Status state="refused" tone="bad">
                          {t("would be refused")}
                        </Status>
                        <div className="help">{refusal}</div>
                      </div>
                    ) : (
                      <Status state="fits" tone="ok">
                        {t("fits")}
                      </Status>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <div className="dialog-actions">
        <Button onClick={onClose}>{t("Cancel")}</Button>
        <Button
          kind="primary"
          disabled={isBusy || isInvalid || changed.length === 0}
          onClick={() => void send()}
        >
          {single ? t("Resize") : t("Resize {n} slices", { n: changed.length })}
        </Button>
      </div>
    </Dialog>
  );
}
