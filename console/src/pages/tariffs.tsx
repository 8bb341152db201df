// The tariffs, which say what a GPU-hour costs from a time on, and the dialog that adds one.
import { type FormEvent, useMemo, useState } from "react";
import { post } from "../api/client";
import { useRights } from "../api/session";
import type { Tariff } from "../api/types";
import { useT } from "../i18n";
import { useObjects } from "../live/objects";
import { Button, Empty, ErrorPanel, Panel } from "../ui/basics";
import { Dialog, useAction } from "../ui/dialog";
import { FieldErrors, OtherErrors, TextField } from "../ui/fields";
import { type Column, DataTable } from "../ui/table";
import { EditDialog } from "./edit-document";

export function Tariffs() {
  const t = useT();
  const tariffs = useObjects("Tariff");
  const { mayOperate } = useRights();
  const [isCreating, setCreating] = useState(false);
  const [edited, setEdited] = useState<Tariff | null>(null);
  const columns = useMemo<Column<Tariff>[]>(
    () => [
      {
        key: "name",
        header: t("Name"),
        cell: (x) =>
          mayOperate ? (
            <Button kind="quiet" onClick={() => setEdited(x)}>
              {x.metadata.name}
            </Button>
          ) : (
            x.metadata.name
          ),
        sortBy: (x) => x.metadata.name,
      },
      { key: "from", header: t("From"), cell: (x) => x.spec.from, sortBy: (x) => x.spec.from },
      {
        key: "price",
        header: t("Price per GPU-hour"),
        numeric: true,
        cell: (x) => `${x.spec.pricePerGpuHour} ${x.spec.currency}`,
        sortBy: (x) => Number(x.spec.pricePerGpuHour),
      },
      {
        key: "units",
        header: t("GPU-hour units"),
        cell: (x) => x.spec.units.map((u) => `${u.model}: ${u.gpuHourUnits}`).join(", ") || "-",
      },
      { key: "granularity", header: t("Granularity"), cell: (x) => x.spec.granularity },
      { key: "minimum", header: t("Minimum"), cell: (x) => x.spec.minimum },
    ],
    [t, mayOperate],
  );
  return (
    <Panel
      title={t("Tariffs")}
      flush
      actions={
        <Button disabled={!mayOperate} onClick={() => setCreating(true)}>
          {t("Set tariff")}
        </Button>
      }
    >
      <DataTable
        label={t("Tariffs")}
        columns={columns}
        rows={tariffs}
        rowKey={(x) => x.metadata.name}
        empty={
          <Empty title={t("No tariffs")}>
            {t("Without a tariff, invoices count GPU-hours and have no amounts. An operator sets one.")}
          </Empty>
        }
      />
      {isCreating && <TariffDialog onClose={() => setCreating(false)} />}
      {edited && <EditDialog object={edited} onClose={() => setEdited(null)} />}
    </Panel>
  );
}

const first_of_month = () => `${new Date().toISOString().slice(0, 7)}-01`;
const shown_paths = ["metadata.name", "spec.from", "spec.currency", "spec.pricePerGpuHour"];

function TariffDialog({ onClose }: { onClose: () => void }) {
  const t = useT();
  const { run } = useAction();
  const [error, setError] = useState<unknown>(null);
  const [form, setForm] = useState({ name: "", from: first_of_month(), currency: "EUR", price: "" });
  const set = (change: Partial<typeof form>) => setForm({ ...form, ...change });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setError(null);
    const document = {
      apiVersion: "carve.dev/v1",
      kind: "Tariff",
      metadata: { name: form.name.trim() },
      spec: {
        currency: form.currency.trim(),
        from: form.from.trim(),
        pricePerGpuHour: form.price.trim(),
      },
    };
    try {
      await post("/v1/documents", document);
      void run(async () => {}, t("Tariff {name} set", { name: form.name }));
      onClose();
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <Dialog title={t("Set tariff")} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <div className="dialog-body">
          <FieldErrors error={error}>
            <TextField
              label={t("Name")}
              value={form.name}
              onChange={(name) => set({ name })}
              isRequired
              paths={["metadata.name"]}
            />
            <TextField
              label={t("From")}
              value={form.from}
              onChange={(from) => set({ from })}
              isRequired
              paths={["spec.from"]}
              help={t("a day or a time (UTC); the tariff holds until the next one begins")}
            />
            <div className="row-fields">
              <TextField
                label={t("Price per GPU-hour")}
                kind="number"
                value={form.price}
                onChange={(price) => set({ price })}
                isRequired
                paths={["spec.pricePerGpuHour"]}
              />
              <TextField
                label={t("Currency")}
                value={form.currency}
                onChange={(currency) => set({ currency })}
                isRequired
                paths={["spec.currency"]}
                help={t("three capital letters")}
              />
            </div>
            <OtherErrors known={shown_paths} />
            <ErrorPanel error={error} />
          </FieldErrors>
        </div>
        <div className="dialog-actions">
          <Button onClick={onClose}>{t("Cancel")}</Button>
          <Button kind="primary" type="submit">
            {t("Set tariff")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
