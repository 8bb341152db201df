// The parts that every page is made of: page frame, panels, facts, buttons, states and empty states.
import { type ButtonHTMLAttributes, Component, type ReactNode, useEffect, useState } from "react";
import { Link } from "wouter";
import { ApiError } from "../api/client";
import { useT } from "../i18n";
import { age } from "./format";

export function Page({
  title,
  crumbs = [],
  actions,
  children,
  lead,
}: {
  title: string;
  crumbs?: [string, string][];
  actions?: ReactNode;
  lead?: ReactNode;
  children: ReactNode;
}) {
  const t = useT();
  useEffect(() => {
    document.title = `${title} – Carve`;
  }, [title]);
  return (
    <>
      <header className="page-head">
        <div className="page-title">
          {crumbs.length > 0 && (
            <nav aria-label={t("Breadcrumb")} className="crumbs">
              {crumbs.map(([label, href]) => (
                <Link key={href} href={href}>
                  {label}
                </Link>
              ))}
            </nav>
          )}
          <h1 tabIndex={-1}>{title}</h1>
          {lead && <div className="lead">{lead}</div>}
        </div>
        {actions && <div className="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

export function Panel({
  title,
  actions,
  children,
  flush,
  className,
}: {
  title?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  flush?: boolean;
  className?: string;
}) {
  return (
    <section className={`panel${flush ? " flush" : ""}${className ? ` ${className}` : ""}`}>
      {(title || actions) && (
        <div className="panel-head">
          {title && <h2>{title}</h2>}
          {actions && <div className="actions">{actions}</div>}
        </div>
      )}
      <div className="panel-body">{children}</div>
    </section>
  );
}

export function Facts({ rows }: { rows: [ReactNode, ReactNode][] }) {
  return (
    <dl className="facts">
      {rows.map(([name, value], i) => (
        <div key={i}>
          <dt>{name}</dt>
          <dd>{value === "" || value === null || value === undefined ? "-" : value}</dd>
        </div>
      ))}
    </dl>
  );
}

type ButtonKind = "primary" | "plain" | "quiet" | "danger";
export function Button({
  kind = "plain",
  className = "",
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { kind?: ButtonKind }) {
  return <button type="button" {...rest} className={`button ${kind} ${className}`} />;
}

export function LinkButton({
  href,
  kind = "plain",
  children,
}: {
  href: string;
  kind?: ButtonKind;
  children: ReactNode;
}) {
  return (
    <Link href={href} className={`button ${kind}`}>
      {children}
    </Link>
  );
}

export type Tone = "ok" | "busy" | "warn" | "bad" | "idle";
const tones: Record<string, Tone> = {
  Running: "ok",
  Ready: "ok",
  running: "ok",
  ok: "ok",
  Succeeded: "ok",
  reachable: "ok",
  available: "ok",
  Updating: "busy",
  Starting: "busy",
  Granted: "busy",
  granted: "busy",
  Waiting: "warn",
  Queued: "busy",
  Deleting: "busy",
  Stopping: "busy",
  stopping: "busy",
  lingering: "warn",
  Degraded: "warn",
  unknown: "idle",
  unresponsive: "bad",
  lost: "bad",
  xid: "bad",
  frozen: "bad",
  Failed: "bad",
  Lost: "bad",
  failed: "bad",
  degraded: "warn",
  CrashLoopBackOff: "bad",
  ImagePullFailed: "bad",
  unreachable: "bad",
  unavailable: "bad",
};
export const toneOf = (state: string): Tone => tones[state] ?? "idle";

// A state: a word, and a dot with the colour of its meaning.
export function Status({
  state,
  tone = toneOf(state),
  children,
}: {
  state: string;
  tone?: Tone;
  children?: ReactNode;
}) {
  return (
    <span className={`status ${tone}`}>
      <i aria-hidden="true" />
      {children ?? (state || "-")}
    </span>
  );
}

export function Tag({ children }: { children: ReactNode }) {
  return <span className="tag">{children}</span>;
}

export function Labels({ labels }: { labels: Record<string, string> }) {
  const entries = Object.entries(labels);
  if (entries.length === 0) return <>-</>;
  return (
    <span className="tags">
      {entries.map(([key, value]) => (
        <Tag key={key}>{`${key}=${value}`}</Tag>
      ))}
    </span>
  );
}

// Explains why there is nothing to show, and the next step.
export function Empty({
  title,
  children,
  action,
}: {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children && <div>{children}</div>}
      {action && <div className="actions">{action}</div>}
    </div>
  );
}

export function Loading() {
  const t = useT();
  return (
    <p className="muted loading" role="status">
      {t("Loading…")}
    </p>
  );
}

export function Banner({ tone, children, action }: { tone: Tone; children: ReactNode; action?: ReactNode }) {
  return (
    <div className={`banner ${tone}`} role={tone === "bad" ? "alert" : "status"}>
      <div>{children}</div>
      {action}
    </div>
  );
}

// A failure with all its reasons.
export function ErrorPanel({ error, action }: { error: unknown; action?: ReactNode }) {
  if (!error) return null;
  const problem = error instanceof ApiError ? error.problem : null;
  return (
    <Banner tone="bad" action={action}>
      <p>{problem?.detail || (error instanceof Error ? error.message : String(error))}</p>
      {problem && problem.reasons.length > 0 && (
        <ul>
          {problem.reasons.map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
      )}
      {problem?.blockedBy && problem.blockedBy.length > 0 && <p>{problem.blockedBy.join(", ")}</p>}
    </Banner>
  );
}

export function Warnings({ texts }: { texts: string[] | undefined }) {
  if (!texts || texts.length === 0) return null;
  return (
    <Banner tone="warn">
      <ul>
        {texts.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </Banner>
  );
}

export function Code({ children }: { children: string }) {
  return (
    <pre className="code" tabIndex={0}>
      {children}
    </pre>
  );
}

export const json = (value: unknown) => JSON.stringify(value, null, 2);

export function useNow(every_ms = 1000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every_ms);
    return () => clearInterval(timer);
  }, [every_ms]);
  return now;
}

// The time since `ns` (UTC nanoseconds) or since a time of the API.
export function Age({ since }: { since: number | string }) {
  const now = useNow();
  const start = typeof since === "number" ? since / 1e6 : Date.parse(since);
  if (!start || Number.isNaN(start)) return <>-</>;
  return (
    <time dateTime={new Date(start).toISOString()} title={new Date(start).toLocaleString()}>
      {age((now - start) * 1e6)}
    </time>
  );
}

// A bar of parts of a whole. The text next to it carries the same information.
export function Meter({
  label,
  whole,
  parts,
}: {
  label: string;
  whole: number;
  parts: { value: number; tone: string }[];
}) {
  return (
    <span className="meter" role="img" aria-label={label} title={label}>
      {parts.map((part, i) => (
        <i
          key={i}
          className={part.tone}
          style={{ width: `${whole > 0 ? Math.min(100, (part.value / whole) * 100) : 0}%` }}
        />
      ))}
    </span>
  );
}

export function Tabs({ tabs }: { tabs: { label: string; href: string; isCurrent: boolean }[] }) {
  const t = useT();
  return (
    <nav className="tabs" aria-label={t("Sections")}>
      {tabs.map((tab) => (
        <Link key={tab.href} href={tab.href} aria-current={tab.isCurrent ? "page" : undefined}>
          {tab.label}
        </Link>
      ))}
    </nav>
  );
}

// Shows the error of a page that cannot be rendered, and leaves the navigation usable.
export class ErrorBoundary extends Component<
  { children: ReactNode; title: string; location: string },
  { error: Error | null }
> {
  override state: { error: Error | null } = { error: null };
  static getDerivedStateFromError(error: Error) {
    return { error };
  }
  override componentDidUpdate(before: { location: string }) {
    if (this.state.error && before.location !== this.props.location) this.setState({ error: null });
  }
  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <Page title={this.props.title}>
        <ErrorPanel error={this.state.error} />
      </Page>
    );
  }
}
