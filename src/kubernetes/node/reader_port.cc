#include "kubernetes/node/reader_port.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "kubernetes/format/node_reader.h"
#include "os/process.h"
#include "tls/certificates/certificate.h"

namespace carve::kubernetes::node {
namespace {

constexpr int64_t self_made_days = 3650;  // Readers cannot verify it anyway, so it is not renewed.
constexpr size_t max_readers = 16;

http::Response plain_response(unsigned status, const std::string& text) {
  return {.status = status, .type = "text/plain", .content = text + "\n"};
}

}  // namespace

Outcome<ReaderIdentity> reader_identity(const std::string& certificate_file, const std::string& key_file,
                                        const std::string& node, int64_t utc_s) {
  if (!certificate_file.empty()) {
    auto opened = tls::Identity::open(certificate_file, key_file);
    if (!opened) return tl::unexpected(opened.error());
    const auto text = os::read_file(certificate_file);
    const auto pin = tls::key_pin(text.value_or(""));
    if (!pin)
      return failure(FailureKind::unavailable, "{} cannot be read as a certificate", certificate_file);
    return ReaderIdentity{std::move(*opened), *pin};
  }
  const auto ca = tls::make_ca(utc_s, self_made_days);
  if (!ca) return tl::unexpected(ca.error());
  const auto serving = tls::make_serving(*ca, {node, "localhost", "127.0.0.1"}, utc_s, self_made_days);
  if (!serving) return tl::unexpected(serving.error());
  auto made =
      tls::Identity::of_texts(serving->certificate_pem, serving->key_pem, "the certificate of --metrics");
  if (!made) return tl::unexpected(made.error());
  return ReaderIdentity{std::move(*made), tls::key_pin(serving->certificate_pem).value_or("")};
}

ReaderPort::ReaderPort(os::Loop& loop, kubernetes::ApiClient& client, os::Fd listener, tls::Identity identity,
                       const std::string& node, Metrics metrics, View view)
    : identity_(std::move(identity)),
      audience_(kubernetes::usage_audience(node)),
      metrics_(std::move(metrics)),
      view_(std::move(view)),
      readers_(client),
      workers_(loop),
      server_(
          loop, std::move(listener),
          {.handle = [this](const http::Request& request, const http::Caller&) { return handle(request); },
           .refuse = plain_response,
           .transport = [this](os::Fd socket) { return identity_.accept(std::move(socket)); },
           .connections = max_readers,
           .connections_from_address = max_readers}) {}

http::Response ReaderPort::handle(const http::Request& request) {
  const bool is_metrics = request.path == "/metrics";
  if (!is_metrics && std::ranges::find(reader_views, request.path) == std::end(reader_views))
    return plain_response(404, fmt::format("unknown path; use /metrics, {}", fmt::join(reader_views, ", ")));
  if (request.method != "GET") return plain_response(405, "use GET");
  if (is_metrics)
    return readers_.answer(request, [this, format = api::metrics_format(request.headers.find("Accept"))](
                                        const ReaderCheck::Done& done) { metrics_(format, done); });
  return readers_.answer(
      request, [this, request](const ReaderCheck::Done& done) { give_view(request, done); }, audience_);
}

void ReaderPort::give_view(const http::Request& request, const ReaderCheck::Done& done) {
  const std::string target = request.query.empty() ? request.path : request.path + "?" + request.query;
  const bool is_accepted = workers_.run(
      request.path,
      [view = view_, target, done]() -> os::Workers::Act {
        const auto response = std::make_shared<http::Response>(view(target));
        return [done, response] { done(std::move(*response)); };
      },
      [done] { done(plain_response(503, "the agent does not respond")); });
  if (!is_accepted) done(plain_response(503, "too many requests wait; try again"));
}

}  // namespace carve::kubernetes::node
