// Navigation, the state of the connection, and the user's preferences.
import { type ReactNode, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { signOut, useSession } from "../api/session";
import { type Key, type Language, useLanguage } from "../i18n";
import { useLive, useObjects } from "../live/objects";
import { Banner, Button } from "../ui/basics";
import { applyTheme, type Theme, useTheme } from "../ui/theme";

export function Logo() {
  return (
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <path fill="#2f6f5e" d="M2 2h12v3H2z" />
      <path fill="#57a68f" d="M2 6h7v3H2z" />
      <path fill="#9fcdbf" d="M2 10h9v4H2z" />
    </svg>
  );
}

type Entry = [href: string, label: Key];
const groups: [Key | "", Entry[]][] = [
  ["", [["/", "Overview"]]],
  [
    "Workloads",
    [
      ["/services", "Services"],
      ["/applications", "Applications"],
      ["/queues", "Queues"],
      ["/jobs", "Jobs"],
      ["/rayclusters", "Ray clusters"],
    ],
  ],
  [
    "Fleet",
    [
      ["/nodes", "Nodes"],
      ["/pools", "Node pools"],
      ["/slices", "Slices"],
    ],
  ],
  [
    "Records",
    [
      ["/invoices", "Invoices"],
      ["/events", "Events"],
      ["/tokens", "Tokens and sessions"],
    ],
  ],
];

function Counts(): Record<string, number> {
  return {
    "/services": useObjects("Service").length,
    "/applications": useObjects("Application").length,
    "/queues": useObjects("Queue").length,
    "/jobs": useObjects("Job").filter((job) => job.status.finishedAt === "").length,
    "/rayclusters": useObjects("RayCluster").length,
    "/nodes": useObjects("Node").length,
    "/pools": useObjects("Pool").length,
  };
}

function ConnectionBanner() {
  const { t } = useLanguage();
  const { state } = useLive();
  const [wasLost, setWasLost] = useState(false);
  useEffect(() => {
    if (state === "lost") setWasLost(true);
    if (state !== "live") return;
    const timer = setTimeout(() => setWasLost(false), 4000);
    return () => clearTimeout(timer);
  }, [state]);
  if (state === "lost")
    return (
      <Banner tone="bad">
        <strong>{t("The controller does not respond.")}</strong>{" "}
        {t("The page shows what was last known. Programs keep running; the page reconnects by itself.")}
      </Banner>
    );
  if (wasLost && state === "live")
    return <Banner tone="ok">{t("Connected to the controller again.")}</Banner>;
  return null;
}

export function Shell({ children }: { children: ReactNode }) {
  const { t, language, setLanguage } = useLanguage();
  const session = useSession();
  const theme = useTheme();
  const [location] = useLocation();
  const [isOpen, setOpen] = useState(false);
  const counts = Counts();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a chosen page closes the navigation on a phone
  useEffect(() => setOpen(false), [location]);
  const isCurrent = (href: string) =>
    href === "/" ? location === "/" : location === href || location.startsWith(`${href}/`);
  return (
    <div className="shell">
      <a className="skip" href="#main">
        {t("Skip to the content")}
      </a>
      <header className="phone-bar">
        <Link href="/" className="brand">
          <Logo /> Carve
        </Link>
        <Button aria-expanded={isOpen} aria-controls="navigation" onClick={() => setOpen(!isOpen)}>
          {t("Menu")}
        </Button>
      </header>
      <aside
        className={`side${isOpen ? " open" : ""}`}
        id="navigation"
        aria-label={t("Navigation and account")}
      >
        <Link href="/" className="brand">
          <Logo /> Carve
        </Link>
        <nav aria-label={t("Pages")}>
          {groups.map(([title, entries]) => (
            <div key={title}>
              {title && <h2>{t(title)}</h2>}
              <ul>
                {entries.map(([href, label]) => (
                  <li key={href}>
                    <Link href={href} aria-current={isCurrent(href) ? "page" : undefined}>
                      {t(label)}
                      {counts[href] !== undefined && counts[href] > 0 && (
                        <span className="nav-count">{counts[href]}</span>
                      )}
                    </Link>
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </nav>
        <div className="side-foot">
          <div className="who">
            <strong>{session.name}</strong>
            <br />
            <span className="muted">
              {session.account
                ? t("{role}, account {account}", { role: t(session.role), account: session.account })
                : t(session.role)}
            </span>
          </div>
          <select
            aria-label={t("Language")}
            value={language}
            onChange={(event) => setLanguage(event.target.value as Language)}
          >
            <option value="en">English</option>
            <option value="zh-CN">简体中文</option>
          </select>
          <select
            aria-label={t("Colours")}
            value={theme}
            onChange={(event) => applyTheme(event.target.value as Theme)}
          >
            <option value="system">{t("Colours of the system")}</option>
            <option value="light">{t("Light")}</option>
            <option value="dark">{t("Dark")}</option>
          </select>
          <Button onClick={() => void signOut()}>{t("Sign out")}</Button>
        </div>
      </aside>
      <main className="main" id="main">
        <ConnectionBanner />
        {children}
      </main>
    </div>
  );
}
