// Sign-in with the one-time code of `carve up` and `carve console`, or with a token. The address
// /login?code=CODE signs in without a click.
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { signIn } from "../api/session";
import { useT } from "../i18n";
import { Button, ErrorPanel } from "../ui/basics";
import { TextField } from "../ui/fields";
import { Logo } from "./shell";

export function SignIn({ problem }: { problem?: string | undefined }) {
  const t = useT();
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [secret, setSecret] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const triedCode = useRef(false);

  const submit = useCallback(
    async (value: { code: string } | { token: string }) => {
      setBusy(true);
      setError(null);
      try {
        const session = await signIn(value);
        if (location.pathname === "/login") navigate("/", { replace: true });
        client.setQueryData(["session"], session);
      } catch (failure) {
        setError(failure);
        setBusy(false);
      }
    },
    [client, navigate],
  );

  useEffect(() => {
    document.title = "Carve";
    const code = new URLSearchParams(location.search).get("code");
    if (location.pathname !== "/login" || !code || triedCode.current) return;
    triedCode.current = true;
    history.replaceState(null, "", "/login"); // The code must not stay in the history.
    void submit({ code });
  }, [submit]);

  return (
    <main className="signin">
      <div className="signin-box">
        <div className="brand">
          <Logo /> Carve
        </div>
        <h1>{t("Sign in")}</h1>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const value = secret.trim();
            void submit(value.startsWith("carve_") ? { token: value } : { code: value });
          }}
        >
          <TextField
            label={t("One-time code or token")}
            kind="password"
            value={secret}
            onChange={setSecret}
            isRequired
            help={
              <>
                {t("Print a code with")} <code>carve console</code>
                {t(", or a token with")} <code>carve token create NAME</code>.
              </>
            }
          />
          <ErrorPanel error={error} />
          {!error && problem && problem !== "no session; sign in" && (
            <ErrorPanel error={new Error(problem)} />
          )}
          <Button kind="primary" type="submit" disabled={isBusy || secret.trim() === ""}>
            {t("Sign in")}
          </Button>
        </form>
      </div>
    </main>
  );
}
