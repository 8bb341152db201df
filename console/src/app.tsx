// The providers, the sign-in and the routes. A page is loaded when it is opened first.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ComponentType, lazy, Suspense, useEffect } from "react";
import { Route, Router, Switch, useLocation } from "wouter";
import { ApiError } from "./api/client";
import { SessionProvider } from "./api/session";
import { LanguageProvider, useT } from "./i18n";
import { LiveProvider, useLive } from "./live/objects";
import { NotFound } from "./pages/not-found";
import { Overview } from "./pages/overview";
import { Shell } from "./pages/shell";
import { SignIn } from "./pages/sign-in";
import { ErrorBoundary, Loading } from "./ui/basics";
import { ToastProvider } from "./ui/dialog";

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // A refusal stays a refusal; only a missing response is worth another attempt.
      retry: (count, error) => count < 2 && error instanceof ApiError && error.problem.status === 0,
      refetchOnWindowFocus: false,
    },
  },
});

// A page that is loaded when it is opened.
const page = (load: () => Promise<ComponentType>) => lazy(async () => ({ default: await load() }));

const routes: [string, ComponentType][] = [
  ["/", Overview],
  ["/services", page(async () => (await import("./pages/services")).ServicesPage)],
  ["/services/new", page(async () => (await import("./pages/eas-form")).EasFormPage)],
  ["/services/:name/edit", page(async () => (await import("./pages/eas-form")).EasFormPage)],
  ["/services/:name/:tab?", page(async () => (await import("./pages/service")).ServicePage)],
  ["/applications", page(async () => (await import("./pages/services")).ApplicationsPage)],
  ["/applications/new", page(async () => (await import("./pages/application-form")).ApplicationFormPage)],
  [
    "/applications/:name/edit",
    page(async () => (await import("./pages/application-form")).ApplicationFormPage),
  ],
  ["/applications/:name/:tab?", page(async () => (await import("./pages/service")).ApplicationPage)],
  ["/nodes", page(async () => (await import("./pages/nodes")).NodesPage)],
  ["/nodes/:name", page(async () => (await import("./pages/nodes")).NodePage)],
  ["/pools", page(async () => (await import("./pages/pools")).PoolsPage)],
  ["/pools/new", page(async () => (await import("./pages/pool-form")).PoolFormPage)],
  ["/pools/:name/edit", page(async () => (await import("./pages/pool-form")).PoolFormPage)],
  ["/pools/:name", page(async () => (await import("./pages/pools")).PoolPage)],
  ["/slices", page(async () => (await import("./pages/slices")).SlicesPage)],
  ["/slices/:node/:name", page(async () => (await import("./pages/slice")).SlicePage)],
  ["/queues", page(async () => (await import("./pages/queues")).QueuesPage)],
  ["/queues/new", page(async () => (await import("./pages/queues")).QueueFormPage)],
  ["/queues/:name", page(async () => (await import("./pages/queues")).QueuePage)],
  ["/jobs", page(async () => (await import("./pages/jobs")).JobsPage)],
  ["/jobs/new", page(async () => (await import("./pages/job-form")).JobFormPage)],
  ["/jobs/:name/:tab?", page(async () => (await import("./pages/jobs")).JobPage)],
  ["/rayclusters", page(async () => (await import("./pages/rayclusters")).RayClustersPage)],
  ["/rayclusters/new", page(async () => (await import("./pages/raycluster-form")).RayClusterFormPage)],
  ["/rayclusters/:name/:tab?", page(async () => (await import("./pages/rayclusters")).RayClusterPage)],
  ["/invoices", page(async () => (await import("./pages/invoices")).InvoicesPage)],
  ["/events", page(async () => (await import("./pages/events")).EventsPage)],
  ["/tokens", page(async () => (await import("./pages/tokens")).TokensPage)],
];

// Moves the focus to the new page's heading, so that keyboard and screen reader continue there. A tab of the
// same page keeps the focus.
function FocusOnNavigation() {
  const [path] = useLocation();
  const location = path.split("/").slice(0, 3).join("/");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect is for a change of the location
  useEffect(() => {
    scrollTo(0, 0);
    if (document.activeElement !== document.body)
      document.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
  }, [location]);
  return null;
}

function Pages() {
  const t = useT();
  const { isLoaded, state } = useLive();
  const [location] = useLocation();
  if (!isLoaded)
    return state === "lost" ? (
      <p className="muted">{t("The controller does not respond. Trying again…")}</p>
    ) : (
      <Loading />
    );
  return (
    <ErrorBoundary location={location} title={t("This page cannot be shown")}>
      <Suspense fallback={<Loading />}>
        <Switch>
          {routes.map(([path, Component]) => (
            <Route key={path} path={path} component={Component as ComponentType<object>} />
          ))}
          <Route>
            <NotFound />
          </Route>
        </Switch>
        <FocusOnNavigation />
      </Suspense>
    </ErrorBoundary>
  );
}

function Unavailable() {
  const t = useT();
  return (
    <main className="signin">
      <p role="status">{t("The controller does not respond. Trying again…")}</p>
    </main>
  );
}

export function App() {
  return (
    <QueryClientProvider client={client}>
      <LanguageProvider>
        <ToastProvider>
          <Router>
            <SessionProvider
              unavailable={<Unavailable />}
              signedOut={(problem) => <SignIn problem={problem} />}
            >
              <LiveProvider>
                <Shell>
                  <Pages />
                </Shell>
              </LiveProvider>
            </SessionProvider>
          </Router>
        </ToastProvider>
      </LanguageProvider>
    </QueryClientProvider>
  );
}
