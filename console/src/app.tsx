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

type Module = Record<string, ComponentType>;
const page = (load: () => Promise<unknown>, name: string) =>
  lazy(async () => ({ default: ((await load()) as Module)[name]! }));

const services = () => import("./pages/services");
const nodes = () => import("./pages/nodes");
const slices = () => import("./pages/slices");
const jobs = () => import("./pages/jobs");

const routes: [string, ComponentType][] = [
  ["/", Overview],
  ["/services", page(services, "ServicesPage")],
  ["/services/new", page(() => import("./pages/eas-form"), "EasFormPage")],
  ["/services/:name/edit", page(() => import("./pages/eas-form"), "EasFormPage")],
  ["/services/:name", page(services, "ServicePage")],
  ["/services/:name/:tab", page(services, "ServicePage")],
  ["/applications", page(services, "ApplicationsPage")],
  ["/applications/new", page(() => import("./pages/application-form"), "ApplicationFormPage")],
  ["/applications/:name/edit", page(() => import("./pages/application-form"), "ApplicationFormPage")],
  ["/applications/:name", page(services, "ApplicationPage")],
  ["/applications/:name/:tab", page(services, "ApplicationPage")],
  ["/nodes", page(nodes, "NodesPage")],
  ["/nodes/:name", page(nodes, "NodePage")],
  ["/pools", page(() => import("./pages/pools"), "PoolsPage")],
  ["/pools/new", page(() => import("./pages/pool-form"), "PoolFormPage")],
  ["/pools/:name/edit", page(() => import("./pages/pool-form"), "PoolFormPage")],
  ["/pools/:name", page(() => import("./pages/pools"), "PoolPage")],
  ["/slices", page(slices, "SlicesPage")],
  ["/slices/:node/:name", page(() => import("./pages/slice"), "SlicePage")],
  ["/queues", page(() => import("./pages/queues"), "QueuesPage")],
  ["/queues/new", page(() => import("./pages/queues"), "QueueFormPage")],
  ["/queues/:name", page(() => import("./pages/queues"), "QueuePage")],
  ["/jobs", page(jobs, "JobsPage")],
  ["/jobs/new", page(() => import("./pages/job-form"), "JobFormPage")],
  ["/jobs/:name", page(jobs, "JobPage")],
  ["/jobs/:name/:tab", page(jobs, "JobPage")],
  ["/rayclusters", page(() => import("./pages/rayclusters"), "RayClustersPage")],
  ["/rayclusters/new", page(() => import("./pages/raycluster-form"), "RayClusterFormPage")],
  ["/rayclusters/:name", page(() => import("./pages/rayclusters"), "RayClusterPage")],
  ["/rayclusters/:name/:tab", page(() => import("./pages/rayclusters"), "RayClusterPage")],
  ["/invoices", page(() => import("./pages/invoices"), "InvoicesPage")],
  ["/events", page(() => import("./pages/events"), "EventsPage")],
  ["/tokens", page(() => import("./pages/tokens"), "TokensPage")],
];

// Moves the focus to the new page's heading, so that keyboard and screen reader continue there.
function FocusOnNavigation() {
  const [location] = useLocation();
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
