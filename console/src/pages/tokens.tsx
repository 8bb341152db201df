// Tokens of the API, and the session of this browser.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useMemo, useState } from "react";
import { call, get, path, post } from "../api/client";
import { signOut, useRights, useSession } from "../api/session";
import type { Token } from "../api/types";
import { useT } from "../i18n";
import { Age, Banner, Button, Code, Empty, ErrorPanel, Facts, Loading, Page, Panel, Tag } from "../ui/basics";
import { ConfirmDialog, Dialog } from "../ui/dialog";
import { FieldErrors, SelectField, TextField } from "../ui/fields";
import { age, clock } from "../ui/format";
import { type Column, DataTable } from "../ui/table";

function CreateDialog({ onClose }: { onClose: () => void }) {
  const t = useT();
  const client = useQueryClient();
  const [form, setForm] = useState({ name: "", role: "viewer", account: "", days: "30" });
  const [error, setError] = useState<unknown>(null);
  const [secret, setSecret] = useState("");
  const set = (change: Partial<typeof form>) => setForm({ ...form, ...change });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setError(null);
    try {
      const made = await post<{ token: string }>("/v1/tokens", {
        name: form.name.trim(),
        role: form.role,
        account: form.account.trim(),
        days: Number(form.days),
      });
      setSecret(made.token);
      void client.invalidateQueries({ queryKey: ["tokens"] });
    } catch (problem) {
      setError(problem);
    }
  };
  if (secret)
    return (
      <Dialog title={t("Token {name}", { name: form.name })} onClose={onClose}>
        <div className="dialog-body">
          <Banner tone="warn">{t("This is the only time that the token is shown. Copy it now.")}</Banner>
          <Code>{secret}</Code>
        </div>
        <div className="dialog-actions">
          <Button onClick={() => void navigator.clipboard?.writeText(secret)}>{t("Copy")}</Button>
          <Button kind="primary" onClick={onClose}>
            {t("Done")}
          </Button>
        </div>
      </Dialog>
    );
  return (
    <Dialog title={t("Create token")} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <div className="dialog-body">
          <FieldErrors error={error}>
            <TextField
              label={t("Name")}
              value={form.name}
              onChange={(name) => set({ name })}
              isRequired
              paths={["name"]}
            />
            <SelectField
              label={t("Role")}
              value={form.role}
              onChange={(role) => set({ role })}
              options={[
                { value: "viewer", label: t("viewer: sees all objects, without environments and logs") },
                { value: "user", label: t("user: also changes the objects of its account") },
                { value: "operator", label: t("operator: changes everything") },
              ]}
            />
            <TextField
              label={t("Account")}
              value={form.account}
              onChange={(account) => set({ account })}
              paths={["account"]}
              help={t("a user of this machine; empty for your own")}
            />
            <TextField
              label={t("Days until it expires")}
              kind="number"
              value={form.days}
              onChange={(days) => set({ days })}
              paths={["days"]}
            />
            <ErrorPanel error={error} />
          </FieldErrors>
        </div>
        <div className="dialog-actions">
          <Button onClick={onClose}>{t("Cancel")}</Button>
          <Button kind="primary" type="submit">
            {t("Create token")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

export function TokensPage() {
  const t = useT();
  const session = useSession();
  const client = useQueryClient();
  const { mayOperate } = useRights();
  const tokens = useQuery({
    queryKey: ["tokens"],
    queryFn: () => get<{ items: Token[] }>("/v1/tokens"),
    enabled: mayOperate,
  });
  const [isCreating, setCreating] = useState(false);
  const [deleted, setDeleted] = useState<string | null>(null);
  const columns = useMemo<Column<Token>[]>(
    () => [
      {
        key: "name",
        header: t("Name"),
        cell: (x) => (
          <>
            {x.name} {x.name === session.name && <Tag>{t("this session")}</Tag>}
          </>
        ),
        sortBy: (x) => x.name,
        text: (x) => x.name,
      },
      { key: "role", header: t("Role"), cell: (x) => x.role, sortBy: (x) => x.role, text: (x) => x.role },
      {
        key: "account",
        header: t("Account"),
        cell: (x) => x.account,
        sortBy: (x) => x.account,
        text: (x) => x.account,
      },
      {
        key: "age",
        header: t("Age"),
        numeric: true,
        cell: (x) => <Age since={x.created_ns} />,
        sortBy: (x) => -x.created_ns,
      },
      {
        key: "expires",
        header: t("Expires in"),
        numeric: true,
        cell: (x) => (x.expires_ns ? age(x.expires_ns - Date.now() * 1e6) : "-"),
        sortBy: (x) => x.expires_ns,
      },
      {
        key: "actions",
        header: t("Actions"),
        numeric: true,
        cell: (x) => (
          <Button
            kind="quiet"
            aria-label={t("Delete token {name}", { name: x.name })}
            onClick={() => setDeleted(x.name)}
          >
            {t("Delete")}
          </Button>
        ),
      },
    ],
    [t, session.name],
  );
  return (
    <Page
      title={t("Tokens and sessions")}
      actions={
        <Button kind="primary" disabled={!mayOperate} onClick={() => setCreating(true)}>
          {t("Create token")}
        </Button>
      }
    >
      <Panel
        title={t("This session")}
        actions={<Button onClick={() => void signOut()}>{t("Sign out")}</Button>}
      >
        <Facts
          rows={[
            [t("Name"), session.name],
            [t("Role"), t(session.role)],
            [t("Account"), session.account],
            [t("Ends at"), clock(new Date(session.expires_ns / 1e6).toISOString())],
          ]}
        />
      </Panel>
      <Panel title={t("Tokens")} flush>
        {!mayOperate ? (
          <Empty title={t("Only operators see tokens")}>
            {t("Your role is {role}. An operator can create tokens: carve token create NAME", {
              role: t(session.role),
            })}
          </Empty>
        ) : tokens.isPending ? (
          <Loading />
        ) : tokens.error ? (
          <ErrorPanel error={tokens.error} />
        ) : (
          <DataTable
            label={t("Tokens")}
            columns={columns}
            rows={tokens.data.items}
            rowKey={(x) => x.name}
            empty={<Empty title={t("No tokens")}>{t("A caller over TCP needs a token.")}</Empty>}
          />
        )}
      </Panel>
      {isCreating && <CreateDialog onClose={() => setCreating(false)} />}
      {deleted && (
        <ConfirmDialog
          title={t("Delete token {name}?", { name: deleted })}
          verb={t("Delete")}
          isDangerous
          act={async () => {
            await call("DELETE", path`/v1/tokens/${deleted}`);
            await client.invalidateQueries({ queryKey: ["tokens"] });
          }}
          onClose={() => setDeleted(null)}
        >
          <p>{t("Callers with this token are rejected from now on.")}</p>
        </ConfirmDialog>
      )}
    </Page>
  );
}
