#include "kubernetes/coordinator/coordinator_start.h"

#include <unistd.h>

#include <cstdio>
#include <random>

#include "kubernetes/coordinator/webhook/review.h"
#include "os/log.h"

namespace carve::kubernetes::coordinator {
namespace {

// The scheduler opens one connection per pod that it binds, and the API server one per review.
constexpr size_t max_coordinator_connections = 512;

http::Response refuse_bytes(unsigned status, const std::string& detail) {
  return {.status = status, .type = "text/plain", .content = detail + "\n"};
}

http::Server::Hooks hooks_of(http::Handler handle, size_t body_bytes) {
  return {.handle = std::move(handle),
          .refuse = refuse_bytes,
          .body_limit = [body_bytes](std::string_view, std::string_view) { return body_bytes; },
          .connections = max_coordinator_connections,
          .connections_from_address = max_coordinator_connections};
}

// Returns the names under which the API server calls the webhooks.
std::string certificate_names(const Options& o) {
  return fmt::format("carve-coordinator.{0}.svc,carve-coordinator.{0}.svc.cluster.local,localhost,127.0.0.1",
                     o.name_space);
}

Outcome<os::Fd> listen_at(const char* option, os::TcpAddress address) {
  auto socket = os::listen_at(address);
  if (!socket) return failure(FailureKind::unavailable, "{} {}", option, socket.error().message);
  os::log::info("{} {}", option, os::text(address));
  return socket;
}

}  // namespace

std::string host_name() {
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return host;
}

int complain(const Failure& f) { return os::complain("carve-coordinator", f); }

int print(Options::Mode mode) {
  return os::print_text(mode == Options::Mode::help         ? help_text()
                        : mode == Options::Mode::completion ? completion_script()
                                                            : "carve-coordinator " CARVE_VERSION "\n");
}

Outcome<kubernetes::Connection> find_api_server(const Options& o) {
  os::log::set_level(o.log_level);
  auto connection = kubernetes::find_connection(o.connection);
  // An unusable file is not an error of the command line.
  if (!connection) return failure(FailureKind::unavailable, "{}", connection.error().message);
  return connection;
}

Outcome<Listeners> listen(const Options& o) {
  auto extender = listen_at("--extender", o.extender);
  if (!extender) return tl::unexpected(extender.error());
  auto webhook = listen_at("--webhook", o.webhook);
  if (!webhook) return tl::unexpected(webhook.error());
  auto health = listen_at("--health", o.health);
  if (!health) return tl::unexpected(health.error());
  return Listeners{std::move(*extender), std::move(*webhook), std::move(*health)};
}

Outcome<std::unique_ptr<Service>> Service::begin(os::Loop& loop, kubernetes::ApiClient& client,
                                                 Listeners listeners, const Options& o) {
  std::optional<tls::Identity> identity;
  if (!o.tls_certificate.empty()) {
    auto opened = tls::Identity::open(o.tls_certificate, o.tls_key);
    if (!opened)
      return failure(FailureKind::unavailable, "--tls-cert, --tls-key: {}", opened.error().message);
    identity = std::move(*opened);
  }
  return std::unique_ptr<Service>(new Service(loop, client, std::move(listeners), o, std::move(identity)));
}

Service::Service(os::Loop& loop, kubernetes::ApiClient& client, Listeners listeners, const Options& o,
                 std::optional<tls::Identity> identity)
    : identity_(std::move(identity)),
      coordinator_(client, {.name_space = o.name_space,
                            .lease_path = o.lease_path(),
                            .host = o.identity,
                            .seed = std::random_device()(),
                            .version = CARVE_VERSION,
                            .allows_unknown_gpu_requests = o.allows_unknown_gpu_requests,
                            .utc_ns = os::utc_ns,
                            .certificate_problem = [this] { return certificate_problem(); }}) {
  if (!identity_)
    certificates_.emplace(
        client, o.name_space, certificate_names(o),
        WebhookCertificates::Hooks{.is_active = [this] { return coordinator_.is_active(); },
                                   .utc_s = [] { return os::utc_ns() / os::second; },
                                   .serve = [this](const CertifiedKey& key) { serve_certificate(key); }});
  extender_.emplace(
      loop, std::move(listeners.extender),
      hooks_of([this](const http::Request& r, const http::Caller&) { return coordinator_.extender(r); },
               max_question_bytes));
  http::Server::Hooks webhook =
      hooks_of([this](const http::Request& r, const http::Caller&) { return coordinator_.webhook(r); },
               max_review_bytes);
  webhook.transport = [this](os::Fd socket) {
    return identity_ ? identity_->accept(std::move(socket)) : nullptr;
  };
  webhook_.emplace(loop, std::move(listeners.webhook), std::move(webhook));
  health_.emplace(
      loop, std::move(listeners.health),
      hooks_of([this](const http::Request& r, const http::Caller&) { return coordinator_.health(r); },
               http::max_body_bytes));
}

std::string Service::certificate_problem() const {
  if (identity_) return "";
  return certificates_ ? certificates_->problem() : "there is no certificate";
}

void Service::serve_certificate(const CertifiedKey& key) {
  auto identity =
      tls::Identity::of_texts(key.certificate_pem, key.key_pem, fmt::format("Secret {}", certificate_secret));
  if (!identity) return os::log::error("{}", identity.error().message);
  identity_ = std::move(*identity);
  os::log::info("webhooks are served with the certificate of Secret {}", certificate_secret);
}

int serve(os::Loop& loop, const os::Fd& signals) {
  loop.watch(signals.get(), EPOLLIN, [&](uint32_t) { loop.stop(); });
  loop.run();
  os::log::info("coordinator stopped; pods keep running");
  return 0;
}

}  // namespace carve::kubernetes::coordinator
