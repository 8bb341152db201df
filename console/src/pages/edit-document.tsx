// Edits the spec of an object as JSON. It is for objects without a form.
import { useState } from "react";
import { path } from "../api/client";
import { Conflict, type Editable, saveObject } from "../api/edit";
import { type Kind, path_of } from "../api/types";
import { useT } from "../i18n";
import type { AnyObject } from "../live/watch";
import { Button, ErrorPanel, json } from "../ui/basics";
import { Dialog, useToast } from "../ui/dialog";
import { FieldErrors, OtherErrors, TextArea } from "../ui/fields";
import { ConflictPanel } from "./conflict";

export const targetOf = (object: AnyObject) =>
  `/v1/${path_of[object.kind as Kind]}/${path`${object.metadata.name}`}?namespace=${encodeURIComponent(object.metadata.namespace)}`;

export function EditDialog({ object, onClose }: { object: AnyObject; onClose: () => void }) {
  const t = useT();
  const show = useToast();
  const [loaded, setLoaded] = useState<Editable>(object as unknown as Editable);
  const [text, setText] = useState(() => json(object.spec));
  const [error, setError] = useState<unknown>(null);
  const [conflict, setConflict] = useState<Editable | null>(null);
  const save = async () => {
    setError(null);
    try {
      const spec = JSON.parse(text) as unknown;
      const body = {
        apiVersion: object.apiVersion,
        kind: object.kind,
        metadata: {
          name: object.metadata.name,
          namespace: object.metadata.namespace,
          labels: loaded.metadata.labels,
          annotations: loaded.metadata.annotations,
        },
        spec,
      };
      const saved = await saveObject<Editable>("PUT", targetOf(object), loaded, body);
      for (const warning of saved.warnings) show("warn", warning);
      show("ok", t("{name} changed", { name: object.metadata.name }));
      onClose();
    } catch (problem) {
      if (problem instanceof Conflict) setConflict(problem.current as Editable);
      else setError(problem);
    }
  };
  return (
    <Dialog
      title={t("Edit {name}", { name: `${object.kind.toLowerCase()}/${object.metadata.name}` })}
      onClose={onClose}
      isWide
    >
      <div className="dialog-body">
        {conflict ? (
          <ConflictPanel
            loaded={loaded}
            current={conflict}
            takeTheirs={() => {
              setLoaded(conflict);
              setText(json(conflict.spec));
              setConflict(null);
            }}
            keepMine={() => {
              setLoaded(conflict);
              setConflict(null);
            }}
          />
        ) : (
          <FieldErrors error={error}>
            <TextArea label="spec" value={text} onChange={setText} rows={20} />
            <OtherErrors known={[]} />
            <ErrorPanel error={error} />
          </FieldErrors>
        )}
      </div>
      <div className="dialog-actions">
        <Button onClick={onClose}>{t("Cancel")}</Button>
        <Button kind="primary" disabled={conflict !== null} onClick={() => void save()}>
          {t("Save")}
        </Button>
      </div>
    </Dialog>
  );
}
