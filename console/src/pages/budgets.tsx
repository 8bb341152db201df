import { type FormEvent, useMemo, useState } from "react";
import { post } from "../api/client";
import { useRights } from "../api/session";
import type { Budget } from "../api/types";
import { useT } from "../i18n";
import { useObjects } from "../live/objects";
import { Button, Empty, ErrorPanel, Meter, Panel, Status } from "../ui/basics";
import { Dialog, useAction } from "../ui/dialog";
import { FieldErrors, OtherErrors, SelectField, TextField } from "../ui/fields";
import { amount } from "../ui/format";
import { type Column, DataTable } from "../ui/table";
import { EditDialog } from "./edit-document";

export function Budgets() {
  const t = useT();
  const budgets = useObjects("Budget");
  const { mayOperate } = useRights();
  const [isCreating, setCreating] = useState(false);
  const [edited, setEdited] = useState<Budget | null>(null);
  const columns = useMemo<Column<Budget>[]>(
    () => [
      {
        key: "name",
        header: t("Name"),
        cell: (b) =>
          mayOperate ? (
            <Button kind="quiet" onClick={() => setEdited(b)}>
              {b.metadata.name}
            </Button>
          ) : (
            b.metadata.name
          ),
        sortBy: (b) => b.metadata.name,
      },
      { key: "account", header: t("Account"), cell: (b) => b.spec.account, sortBy: (b) => b.spec.account },
      {
        key: "limit",
        header: t("Limit in a month"),
        cell: (b) => (b.spec.gpuHours ? t("{hours} GPU-hours", { hours: b.spec.gpuHours }) : b.spec.amount),
      },
      {
        key: "used",
        header: t("Used"),
        cell: (b) => (
          <span className="amounts">
            <Meter
              label={`${b.status.percent}%`}
              whole={100}
              parts={[{ value: b.status.percent, tone: b.status.percent >= 100 ? "bad" : "used" }]}
            />
            <span>{`${amount(b.status.used)}, ${b.status.percent}%`}</span>
          </span>
        ),
        sortBy: (b) => b.status.percent,
      },
      {
        key: "then",
        header: t("At 100%"),
        cell: (b) =>
          b.spec.then === "refuse"
            ? t("new pods are rejected")
            : b.spec.then === "hold"
              ? t("new jobs wait")
              : t("warning"),
      },
      {
        key: "holds",
        header: t("State"),
        cell: (b) => (
          <Status state="budget" tone={b.status.holds ? "bad" : b.status.reached ? "warn" : "ok"}>
            {b.status.holds
              ? t("jobs wait")
              : b.status.reached
                ? t("{n}% reached", { n: b.status.reached })
                : t("ok")}
          </Status>
        ),
      },
    ],
    [t, mayOperate],
  );
  return (
    <Panel
      title={t("Budgets")}
      flush
      actions={
        <Button disabled={!mayOperate} onClick={() => setCreating(true)}>
          {t("Set budget")}
        </Button>
      }
    >
      <DataTable
        label={t("Budgets")}
        columns={columns}
        rows={budgets}
        rowKey={(b) => b.metadata.name}
        empty={
          <Empty title={t("No budgets")}>{t("A budget limits what an account may use in a month.")}</Empty>
        }
      />
      {isCreating && <BudgetDialog onClose={() => setCreating(false)} />}
      {edited && <EditDialog object={edited} onClose={() => setEdited(null)} />}
    </Panel>
  );
}

function BudgetDialog({ onClose }: { onClose: () => void }) {
  const t = useT();
  const { run } = useAction();
  const [error, setError] = useState<unknown>(null);
  const [form, setForm] = useState({ name: "", account: "", kind: "gpuHours", limit: "", reaction: "warn" });
  const set = (change: Partial<typeof form>) => setForm({ ...form, ...change });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setError(null);
    const document = {
      apiVersion: "carve.dev/v1",
      kind: "Budget",
      metadata: { name: form.name.trim() || form.account.trim() },
      // biome-ignore lint/suspicious/noThenProperty: the API's name of the field
      spec: { account: form.account.trim(), [form.kind]: form.limit.trim(), then: form.reaction },
    };
    try {
      await post("/v1/documents", document);
      void run(async () => {}, t("Budget of {account} set", { account: form.account }));
      onClose();
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <Dialog title={t("Set budget")} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <div className="dialog-body">
          <FieldErrors error={error}>
            <TextField
              label={t("Account")}
              value={form.account}
              onChange={(account) => set({ account })}
              isRequired
              paths={["spec.account", "metadata.name"]}
            />
            <div className="row-fields">
              <SelectField
                label={t("Limit in a month")}
                value={form.kind}
                onChange={(kind) => set({ kind })}
                options={[
                  { value: "gpuHours", label: t("GPU-hours") },
                  { value: "amount", label: t("Amount") },
                ]}
              />
              <TextField
                label={t("Number")}
                kind="number"
                value={form.limit}
                onChange={(limit) => set({ limit })}
                isRequired
                paths={["spec.gpuHours", "spec.amount"]}
              />
            </div>
            <SelectField
              label={t("At 100%")}
              value={form.reaction}
              onChange={(reaction) => set({ reaction })}
              options={[
                { value: "warn", label: t("warning") },
                { value: "hold", label: t("new jobs wait") },
                { value: "refuse", label: t("new pods are rejected") },
              ]}
            />
            <OtherErrors known={["spec.account", "metadata.name", "spec.gpuHours", "spec.amount"]} />
            <ErrorPanel error={error} />
          </FieldErrors>
        </div>
        <div className="dialog-actions">
          <Button onClick={onClose}>{t("Cancel")}</Button>
          <Button kind="primary" type="submit">
            {t("Set budget")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
