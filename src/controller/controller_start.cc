#include "controller/controller_start.h"

#include <grp.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "client/client.h"
#include "controller/kubernetes/custom_resources.h"
#include "controller/nodes/slice_forecast.h"
#include "controller/objects/journaled_registry.h"
#include "controller/objects/stored_check.h"
#include "os/capabilities.h"
#include "os/clock.h"
#include "os/command_line.h"
#include "os/directory.h"
#include "os/log.h"
#include "os/process.h"
#include "os/service_watchdog.h"
#include "os/socket.h"
#include "os/user.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

// Limit for each socket, so that all descriptors stay below the limit that raise_descriptor_limit() sets.
constexpr size_t max_api_connections = 1000;
constexpr size_t max_api_streams = 600;
constexpr size_t max_connections_from_uid = 250;
constexpr size_t max_streams_from_peer = 150;
constexpr size_t max_connections_from_address = 128;
constexpr size_t max_watch_queue_bytes = 512 << 10;
constexpr int64_t event_write_interval_ns = os::second;
constexpr rlim_t wanted_descriptors = 8192;
// Longer than a change that conflicts several times with those of other programs (cluster_registry.cc).
constexpr int64_t change_patience_ns = 60 * os::second;

// Raises the limit of open descriptors for the connections and for the pidfds of 2,000 programs, as far as
// the system allows.
void raise_descriptor_limit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted_descriptors) return;
  files.rlim_cur = std::min(files.rlim_max, wanted_descriptors);
  setrlimit(RLIMIT_NOFILE, &files);
}

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

// Returns the failure with the name of the option that the user can change.
tl::unexpected<Failure> of_option(const char* option, const std::string& value, const Failure& failed) {
  return failure(failed.kind, "{} {}: {}", option, value, failed.message);
}

bool is_member_of(gid_t group) {
  if (geteuid() == 0) return true;
  std::vector<gid_t> groups(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  return std::find(groups.begin(), groups.begin() + std::max(count, 0), group) !=
         groups.begin() + std::max(count, 0);
}

// Opens the API's unix socket. The group `carve` may use it if the group exists and this user may assign it.
Outcome<os::Fd> open_unix(const std::string& path) {
  auto fd = os::listen_at(path, SOCK_STREAM, 0660);
  if (!fd) return of_option("--socket", path, fd.error());
  const group* carve = getgrnam("carve");
  if (carve != nullptr && is_member_of(carve->gr_gid) &&
      chown(path.c_str(), static_cast<uid_t>(-1), carve->gr_gid) != 0)
    return failure(FailureKind::unavailable, "--socket {}: cannot change its group to carve: {}", path,
                   strerror(errno));
  return fd;
}

std::optional<http::Caller> identify(int socket, std::span<const uint32_t> operators) {
  auto peer = os::peer_of(socket);
  if (!peer) return std::nullopt;
  return http::Caller::user(std::move(*peer), operators);
}

}  // namespace

Surroundings surroundings() {
  char here[4096] = "/", host[256] = "";
  if (getcwd(here, sizeof here) == nullptr) here[1] = '\0';
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return {.uid = geteuid(),
          .home = variable("HOME"),
          .xdg_state_home = variable("XDG_STATE_HOME"),
          .working_directory = here,
          .host_name = host,
          .agent_socket = client::find_socket(""),
          .controller_socket = client::find_controller_socket("")};
}

int complain(const Failure& f) { return os::complain("carve-controller", f); }

int print(Options::Mode mode) {
  return os::print_text(mode == Options::Mode::help         ? help_text()
                        : mode == Options::Mode::completion ? completion_script()
                        : mode == Options::Mode::custom_resources
                            ? std::string(custom_resource_head) + custom_resource_definitions()
                            : "carve-controller " CARVE_VERSION "\n");
}

Outcome<Locks> lock(const Options& o) {
  os::log::set_level(o.log_level);
  umask(022);
  if (const auto made = os::make_directory(o.state, 0700); !made)
    return of_option("--state", o.state, made.error());
  const std::string folder = o.socket.substr(0, std::max<size_t>(o.socket.rfind('/'), 1));
  if (const auto made = os::make_directory(folder, geteuid() == 0 ? 0755 : 0700); !made)
    return of_option("--socket", o.socket, made.error());
  auto state = os::wait_for_lock(o.state + "/controller.lock", "controller", "this state");
  if (!state) return of_option("--state", o.state, state.error());
  auto socket = os::wait_for_lock(o.socket + ".lock", "controller or agent", "this socket");
  if (!socket) return of_option("--socket", o.socket, socket.error());
  return Locks{.state = std::move(*state), .socket = std::move(*socket)};
}

namespace {

// The start scripts for engine pods, and the console, are installed with this program.
std::string engine_scripts() { return os::own_folder() + "/../share/carve/engines"; }
std::string installed_console() { return os::own_folder() + "/../share/carve/console"; }

}  // namespace

Outcome<Launcher> begin_launcher(const Options& o) {
  return Launcher::begin(os::own_folder() + "/carve-supervise", o.state + programs_folder);
}

Outcome<std::unique_ptr<ClusterThread>> begin_cluster(const Options& o) {
  if (!o.kubernetes) return nullptr;
  auto connection = kubernetes::find_connection({.kubeconfig = o.kubeconfig});
  if (!connection) return failure(FailureKind::unavailable, "--kubernetes: {}", connection.error().message);
  os::log::info("objects are kept in the cluster at {}", connection->server);
  return ClusterThread::begin(std::move(*connection));
}

Outcome<std::unique_ptr<Records>> Records::open(const Options& o, ClusterThread* cluster) {
  const std::string path = o.state + "/controller.db";
  const int64_t now_s = os::utc_ns() / os::second;
  std::string moved_aside, damage;
  for (;;) {
    auto opened = ControllerStore::open(path, now_s);
    if (!opened) return tl::unexpected(opened.error());
    if (!opened->moved_aside.empty()) moved_aside = opened->moved_aside, damage = opened->damage;
    std::unique_ptr<Records> out(new Records(std::move(opened->store), cluster));
    auto sound = out->check();
    if (sound) sound = out->read();
    const bool is_damaged =
        !sound && sound.error().kind == FailureKind::failed_precondition && moved_aside.empty();
    if (!sound && !is_damaged) return tl::unexpected(sound.error());
    if (is_damaged) {
      out.reset();
      damage = sound.error().message;
      auto aside = ControllerStore::move_aside(path, now_s, damage);
      if (!aside) return tl::unexpected(aside.error());
      moved_aside = std::move(*aside);
      continue;
    }
    if (!moved_aside.empty())
      os::log::error(
          "the controller database was damaged ({}); it was moved to {} and replaced by an empty one", damage,
          moved_aside);
    return out;
  }
}

// Checks all records that the reconcilers later read and rely on.
Outcome<void> Records::check() {
  auto known_objects = store.all<Object>();
  if (!known_objects) return tl::unexpected(known_objects.error());
  for (const Object& object : *known_objects)
    if (auto sound = check_stored(object); !sound) return sound;
  checked_ = std::move(*known_objects);
  const auto revisions = store.all<RevisionRecord>();
  if (!revisions) return tl::unexpected(revisions.error());
  for (const RevisionRecord& revision : *revisions)
    if (auto sound = check_stored_revision(revision.uid, revision.spec); !sound) return sound;
  if (const auto all = store.all<WorkloadRecord>(); !all) return tl::unexpected(all.error());
  if (const auto all = store.all<ReplicaRecord>(); !all) return tl::unexpected(all.error());
  const auto jobs = store.all<JobRecord>();
  if (!jobs) return tl::unexpected(jobs.error());
  const auto pods = store.all<PodRecord>();
  if (!pods) return tl::unexpected(pods.error());
  for (const JobRecord& job : *jobs)
    if (job.end > static_cast<uint32_t>(workload::JobEnd::cancelled))
      return failure(FailureKind::failed_precondition, "job {} has an unknown end {}", job.uid, job.end);
  for (const PodRecord& pod : *pods)
    if (pod.role > static_cast<uint32_t>(PodRole::task))
      return failure(FailureKind::failed_precondition, "pod {} has an unknown role {}", pod.program,
                     pod.role);
  return {};
}

Outcome<void> Records::read() {
  auto known_nodes = store.all<NodeRecord>();
  if (!known_nodes) return tl::unexpected(known_nodes.error());
  nodes = std::move(*known_nodes);
  auto known_tokens = store.all<Token>();
  if (!known_tokens) return tl::unexpected(known_tokens.error());
  const auto version = store.version();
  if (!version) return tl::unexpected(version.error());
  if (cluster_ != nullptr) {
    checked_.clear();
    objects = &cluster_->objects();
  } else {
    objects = &stored_.emplace(store, std::exchange(checked_, {}), *version);
  }
  tokens.emplace(store, std::move(*known_tokens));
  auto known_sessions = store.all<Session>();
  if (!known_sessions) return tl::unexpected(known_sessions.error());
  sessions.emplace(store, std::move(*known_sessions));
  const auto known_events = store.all<KeptEvent>();
  if (!known_events) return tl::unexpected(known_events.error());
  events.emplace(*objects, store, *known_events);
  return {};
}

NodeSync keep_nodes(Records& records, const Options& o) {
  std::vector<std::string> names;
  for (const NodeAddress& node : o.nodes) names.push_back(node.name);
  return NodeSync(*records.objects, names, os::utc_ns(), o.expected_start_s * os::second);
}

Services::Services(Records& records, Launcher launcher, const Options& o)
    : machine(
          [&] {
            std::vector<MachineEffects::Node> nodes;
            for (const NodeAddress& node : o.nodes) nodes.push_back({node.name, node.socket});
            return nodes;
          }(),
          {.nodes_to_ask =
               [&records](const NodeChoice& choice, const Amounts& amounts) {
                 return SliceForecast(*records.objects).nodes_to_ask(choice, amounts);
               },
           .isolation_of = [&records](const std::string& name) -> std::optional<Isolation> {
             const auto node = records.objects->find(node_key(name));
             return node ? isolation_of(*node) : std::nullopt;
           },
           .forecast = [&records] { return SliceForecast(*records.objects); }},
          std::move(launcher), o.state) {}

Outcome<std::unique_ptr<Services>> Services::begin(Records& records, Launcher launcher, const Options& o) {
  if (const auto made = os::make_directory(o.state + programs_folder, 0711); !made)
    return of_option("--state", o.state, made.error());
  auto workloads = WorkloadRecords::read(records.store);
  if (!workloads) return tl::unexpected(workloads.error());
  auto jobs = JobRecords::read(records.store);
  if (!jobs) return tl::unexpected(jobs.error());
  std::unique_ptr<Services> out(new Services(records, std::move(launcher), o));
  if (o.kubernetes) return out;  // The cluster runs the programs.
  out->thread.emplace(
      *records.objects, std::move(*workloads),
      [&](Effects& effects) {
        return JobReconciler(*records.objects, std::move(*jobs), effects, out->job_positions,
                             engine_scripts());
      },
      out->machine, out->late_events, o.orphan_grace_s * os::second);
  return out;
}

namespace {

// Writes a line of the audit log. If that fails, the line goes to the program's log.
void write_audit(ControllerStore& store, const AuditLine& line) {
  const auto written = store.append({.at_ns = os::utc_ns(),
                                     .caller = line.caller,
                                     .address = line.address,
                                     .change = line.change,
                                     .status = line.status});
  if (!written)
    os::log::error(Cause{.who = line.caller}, "{}; {} by {} from {}: {}", written.error().message,
                   line.change, line.caller, line.address, line.status);
}

// Returns the caller of a TCP connection: anonymous, with its address.
std::optional<http::Caller> remote_caller(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&storage), size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return std::nullopt;
  return http::Caller::remote(fmt::format("{}:{}", host, port), os::uid_of_local_peer(socket));
}

}  // namespace

namespace {

std::vector<std::string> agent_sockets(const Options& o) {
  std::vector<std::string> out;
  for (const NodeAddress& node : o.nodes) out.push_back(node.socket);
  return out;
}

// Opens the console that --console names, or else the installed one. Returns no value if none is installed or
// wanted.
Outcome<std::optional<ConsoleFiles>> open_console(const Options& o) {
  if (o.console == "none") return std::nullopt;
  auto files = ConsoleFiles::open(o.console.empty() ? installed_console() : o.console);
  if (files) return std::optional(std::move(*files));
  if (!o.console.empty()) return of_option("--console", o.console, files.error());
  os::log::info("no console is installed with this program; serve one with --console DIR");
  return std::nullopt;
}

// Browsers send the host name under which they reached the controller.
KnownHosts known_hosts(const Options& o) {
  std::vector<std::string> names = o.hosts;
  if (o.listen) names.push_back(o.listen->host);
  return KnownHosts(names);
}

}  // namespace

Api::Api(os::Loop& loop, KnownNodes& nodes, NodeSync& node_sync, Records& records, Services& services,
         HistoryThread& history, ClusterThread* cluster, const Options& o, std::string endpoint,
         os::Fd unix_socket, os::Fd tcp_socket, const std::optional<tls::Identity>& identity,
         std::optional<ConsoleFiles> console)
    : loop_(loop),
      nodes_(nodes),
      node_sync_(node_sync),
      store_(records.store),
      events_(*records.events),
      objects_(*records.objects),
      machine_(services.machine),
      job_positions_(services.job_positions),
      late_events_(services.late_events),
      console_(std::move(console)),
      version_{.program = "carve-controller",
               .version = CARVE_VERSION,
               .pid = static_cast<uint32_t>(getpid()),
               .state = o.state,
               .endpoint = std::move(endpoint),
               .started_ns = static_cast<uint64_t>(os::utc_ns()),
               .console = console_.has_value()},
      operators_{0, geteuid()},
      cluster_(cluster),
      log_readers_(loop),
      document_readers_(loop),
      changers_(loop, change_patience_ns),
      log_streams_(
          *records.objects, [this](const std::string& slice) { return machine_.directory_of(slice); },
          [this](const std::string& key, std::function<os::Workers::Act()> work, os::Workers::Act late) {
            return log_readers_.run(key, std::move(work), std::move(late));
          }),
      billing_(loop, o.state + "/usage.db", o.nodes, *records.objects),
      history_(history),
      routes_({.views = *this,
               .audit = [&records](const AuditLine& line) { write_audit(records.store, line); },
               .objects = *records.objects,
               .tokens = *records.tokens,
               .node_actions = this,
               .sessions = &*records.sessions,
               .console = console_ ? &*console_ : nullptr,
               .hosts = known_hosts(o),
               .events = &events_,
               .answers = &records.store,
               .account_quota_percent = o.account_quota_percent,
               .allows_unknown_gpu_requests = o.allows_unknown_gpu_requests,
               .read_logs =
                   [this](const std::string& key, std::function<Answer()> work) {
                     return answer_later(log_readers_, key, std::move(work));
                   },
               .change_objects = cluster == nullptr ? AnswerLater()
                                                    : AnswerLater([this](const std::string& key,
                                                                         std::function<Answer()> work) {
                                                        return answer_later(changers_, key, std::move(work));
                                                      }),
               .runs_pods = cluster != nullptr,
               .read_documents =
                   [this](const std::string& key, std::function<Answer()> work) {
                     return answer_later(document_readers_, key, std::move(work));
                   }}),
      caller_slices_(loop, agent_sockets(o)) {
  const auto handle = [this](const http::Request& request, const http::Caller& caller) {
    return routes_.answer(request, caller);
  };
  http::Server::Hooks hooks{
      .handle = handle,
      .refuse = refuse_bytes,
      .identify = [this](int socket) { return identify(socket, operators_); },
      .complete = [this](const http::Caller& caller, auto then) { return caller_slices_.find(caller, then); },
      .body_limit = body_limit,
      .queue_bytes = max_watch_queue_bytes,
      .connections = max_api_connections,
      .streams = max_api_streams,
      .connections_from_uid = max_connections_from_uid,
      .streams_from_peer = max_streams_from_peer,
      .has_reserve = [this](uint32_t uid) { return std::ranges::find(operators_, uid) != operators_.end(); }};
  unix_.emplace(loop, std::move(unix_socket), hooks);
  kept_socket_.emplace(
      o.socket, [path = o.socket] { return open_unix(path); },
      [this](os::Fd listener) { unix_->listen_at(std::move(listener)); });
  loop.every(os::second, [this] {
    if (const auto lost = kept_socket_->check()) os::log::warning("{}", *lost);
  });
  if (tcp_socket) {
    hooks.identify = remote_caller;
    hooks.complete = nullptr;  // Over TCP the token identifies the caller, not its process.
    hooks.connections_from_address = max_connections_from_address;
    if (identity) hooks.transport = [identity](os::Fd socket) { return identity->accept(std::move(socket)); };
    tcp_.emplace(loop, std::move(tcp_socket), hooks);
  }
  deliver_changes(loop, *records.objects);
  loop.every(os::second, [this] { routes_.refresh_watches(); });
  loop.every(log_stream_interval_ns, [this] { log_streams_.tick(); });
  loop.every(event_write_interval_ns, [this] { write_events(); });
}

Outcome<std::optional<kubernetes::Connection>> find_cluster(const Options& o) {
  if (o.kubernetes_nodes.empty()) return std::nullopt;
  kubernetes::ConnectionOptions from;
  if (o.kubernetes_nodes != pod_account) from.kubeconfig = o.kubernetes_nodes;
  auto found = kubernetes::find_connection(from);
  if (!found) return of_option("--kubernetes-nodes", o.kubernetes_nodes, found.error());
  return std::optional(std::move(*found));
}

void Api::read_cluster(const kubernetes::Connection& connection, const Options& o) {
  std::set<std::string> local;
  for (const NodeAddress& node : o.nodes) local.insert(node.name);
  usage_.emplace(UsageThread::Settings{.connection = connection,
                                       .account = o.usage_account,
                                       .interval_ns = o.usage_interval_s * os::second,
                                       .local_nodes = std::move(local)},
                 billing_, objects_, late_events_);
}

// The registry reports changes from any thread, possibly after this object was destroyed. All changes before
// the loop's next turn are delivered together.
void Api::deliver_changes(os::Loop& loop, ObjectRegistry& objects) {
  objects.subscribe([this, poster = loop.poster(), held = std::weak_ptr(changed_)] {
    const auto changed = held.lock();
    if (!changed || changed->exchange(true)) return;
    poster.post([this, held] {
      const auto delivered = held.lock();
      if (!delivered) return;
      delivered->store(false);
      events_.take_changes(now_ns());
      routes_.deliver_changes();
    });
  });
}

void Api::write_events() {
  restarts_.update(objects_.workloads());
  for (const EventInbox::Entry& entry : late_events_.take()) events_.add(entry.object, entry.event, now_ns());
  events_.take_changes(now_ns());
  if (const auto written = events_.write(); !written) os::log::error("{}", written.error().message);
}

Api::~Api() { write_events(); }

Outcome<std::unique_ptr<Api>> Api::open(os::Loop& loop, KnownNodes& nodes, NodeSync& node_sync,
                                        Records& records, Services& services, HistoryThread& history,
                                        ClusterThread* cluster, const Options& o) {
  raise_descriptor_limit();
  const auto usage_cluster = find_cluster(o);
  if (!usage_cluster) return tl::unexpected(usage_cluster.error());
  os::Fd tcp;
  std::optional<tls::Identity> identity;
  if (!o.tls_certificate.empty()) {
    auto opened = tls::Identity::open(o.tls_certificate, o.tls_key);
    if (!opened)
      return failure(FailureKind::unavailable, "--tls-cert, --tls-key: {}", opened.error().message);
    identity = std::move(*opened);
  }
  std::string endpoint;
  if (o.listen) {
    os::TcpAddress address = *o.listen;
    auto opened = os::listen_at(address);
    if (opened) {
      tcp = std::move(*opened);
      endpoint = fmt::format("{}://{}", identity ? "https" : "http", os::text(address));
      os::log::info("API served at {}, where callers need a token", endpoint);
    } else if (o.listen_requested) {
      return failure(FailureKind::unavailable, "--listen {}", opened.error().message);
    } else {
      os::log::warning("API not served over TCP: {}; use another address with --listen HOST:PORT",
                       opened.error().message);
    }
  }
  std::optional<ConsoleFiles> console;
  if (tcp) {
    auto files = open_console(o);
    if (!files) return tl::unexpected(files.error());
    console = std::move(*files);
  }
  auto opened = open_unix(o.socket);
  if (!opened) return tl::unexpected(opened.error());
  os::log::info("carve-controller {} serves {} node{} at {}", CARVE_VERSION, o.nodes.size(),
                o.nodes.size() == 1 ? "" : "s", o.socket);
  std::unique_ptr<Api> out(new Api(loop, nodes, node_sync, records, services, history, cluster, o, endpoint,
                                   std::move(*opened), std::move(tcp), identity, std::move(console)));
  if (*usage_cluster) out->read_cluster(**usage_cluster, o);
  return out;
}

Outcome<void> give_up_privileges() { return os::keep_capabilities({}); }

int serve(os::Loop& loop, const os::Fd& signals, KnownNodes& nodes, const Options& o) {
  loop.watch(signals.get(), EPOLLIN, [&](uint32_t) { loop.stop(); });
  os::report_to_watchdog(loop);
  os::log::report_left_out(loop);
  loop.run();
  os::log::write_left_out();
  os::log::info("controller ended; agents, slices and programs keep running");
  unlink(o.socket.c_str());
  nodes.end();
  return 0;
}

}  // namespace carve::controller
