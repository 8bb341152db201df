#include "kubernetes/node/metrics_port.h"

#include "tls/certificates/certificate.h"

namespace carve::kubernetes::node {
namespace {

constexpr int64_t self_made_days = 3650;  // Readers cannot verify it anyway, so it is not renewed.
constexpr size_t max_readers = 16;

http::Response plain_response(unsigned status, const std::string& text) {
  return {.status = status, .type = "text/plain", .content = text + "\n"};
}

}  // namespace

Outcome<tls::Identity> metrics_identity(const std::string& certificate_file, const std::string& key_file,
                                        const std::string& node, int64_t utc_s) {
  if (!certificate_file.empty()) return tls::Identity::open(certificate_file, key_file);
  const auto ca = tls::make_ca(utc_s, self_made_days);
  if (!ca) return tl::unexpected(ca.error());
  const auto serving = tls::make_serving(*ca, {node, "localhost", "127.0.0.1"}, utc_s, self_made_days);
  if (!serving) return tl::unexpected(serving.error());
  return tls::Identity::of_texts(serving->certificate_pem, serving->key_pem, "the certificate of --metrics");
}

MetricsPort::MetricsPort(os::Loop& loop, kubernetes::ApiClient& client, os::Fd listener,
                         tls::Identity identity, kubernetes::ReaderCheck::Source source)
    : identity_(std::move(identity)),
      source_(std::move(source)),
      readers_(client),
      server_(
          loop, std::move(listener),
          {.handle = [this](const http::Request& request, const http::Caller&) { return handle(request); },
           .refuse = plain_response,
           .transport = [this](os::Fd socket) { return identity_.accept(std::move(socket)); },
           .connections = max_readers,
           .connections_from_address = max_readers}) {}

http::Response MetricsPort::handle(const http::Request& request) {
  if (request.path != "/metrics") return plain_response(404, "unknown path; use /metrics");
  if (request.method != "GET") return plain_response(405, "use GET");
  return readers_.answer(request, source_);
}

}  // namespace carve::kubernetes::node
