// The caller's session: who is signed in, with which role, and what this role may do.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect } from "react";
import { ApiError, call, get, post, whenUnauthenticated } from "./client";
import { findPageKey, keepPageKey } from "./page-key";

export type Role = "viewer" | "user" | "operator";
// GET /v1/session.
export interface Session {
  name: string; // As GET /v1/tokens lists it.
  role: Role;
  account: string;
  expires_ns: number;
}

const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("a page is shown without a session");
  return session;
}

// Whether the role may change its own objects, and whether it may change all of them.
export function useRights() {
  const { role, account } = useSession();
  const mayOperate = role === "operator";
  return {
    mayChange: role !== "viewer",
    mayOperate,
    mayChangeOf: (owner: string) => mayOperate || (role === "user" && owner === account),
  };
}

export async function signIn(secret: { code: string } | { token: string }): Promise<Session> {
  const { page_key, ...session } = await post<Session & { page_key: string }>("/v1/session", secret);
  keepPageKey(page_key);
  return session;
}

async function readSession(): Promise<Session> {
  await findPageKey();
  return get<Session>("/v1/session");
}

export function SessionProvider({
  children,
  signedOut,
  unavailable,
}: {
  children: ReactNode;
  signedOut: (problem?: string) => ReactNode;
  unavailable: ReactNode; // Shown while the controller does not respond.
}) {
  const client = useQueryClient();
  const session = useQuery({
    queryKey: ["session"],
    queryFn: readSession,
    retry: (_, error) => !(error instanceof ApiError && error.problem.status === 401),
    retryDelay: 1000,
    staleTime: Number.POSITIVE_INFINITY,
  });
  useEffect(() => whenUnauthenticated(() => client.setQueryData(["session"], null)), [client]);
  if (session.isPending) return session.failureCount > 0 ? unavailable : null;
  if (!session.data) return signedOut(session.error?.message);
  return <SessionContext.Provider value={session.data}>{children}</SessionContext.Provider>;
}

export async function signOut() {
  await call("DELETE", "/v1/session").catch(() => {});
  keepPageKey("");
  location.assign("/login");
}
