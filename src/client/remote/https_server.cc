#include "client/remote/https_server.h"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/ssl.hpp>

#include "client/exchange.h"

namespace carve::client {
namespace {

namespace ssl = asio::ssl;
using Stream = beast::ssl_stream<beast::tcp_stream>;

constexpr const char* default_port = "8470";
constexpr std::string_view scheme = "https://";

bool is_address(const std::string& host) {
  boost::system::error_code error;
  asio::ip::make_address(host, error);
  return !error;
}

// Returns what is wrong with a certificate that OpenSSL rejected, and how to fix it.
std::string certificate_problem(long result, const HttpsAddress& address, bool has_ca) {
  switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "its certificate has expired; start the controller with a new one (--tls-cert, --tls-key)";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "its certificate is not valid yet; check the clocks of both machines";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format(
          "its certificate is for another name than '{}'; use a name in the certificate, or make a "
          "certificate "
          "with this name (subjectAltName)",
          address.host);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return has_ca ? "its certificate was not issued by the given CA; get the CA's certificate from the "
                      "controller's "
                      "operator (--ca FILE or CARVE_CA)"
                    : "its certificate was issued by a CA that this machine does not know; give the CA's "
                      "certificate "
                      "with --ca FILE or CARVE_CA";
    default: return fmt::format("its certificate is invalid: {}", X509_verify_cert_error_string(result));
  }
}

api::Problem problem(std::string title, std::string detail) {
  return {.type = "carve:no-response", .title = std::move(title), .status = 503, .detail = std::move(detail)};
}

// One connection: look-up, TCP, TLS. `stream` is usable if connect() returns no problem.
struct Connection {
  asio::io_context context{1};
  ssl::context& tls;
  Stream stream{context, tls};

  explicit Connection(ssl::context& settings) : tls(settings) {}
};

class Https final : public Remote {
 public:
  Https(HttpsServer server, const Settings& settings)
      : server_(std::move(server)), settings_(settings), tls_(ssl::context::tls_client) {}

  Outcome<void> prepare() {
    boost::system::error_code error;
    SSL_CTX_set_min_proto_version(tls_.native_handle(), TLS1_2_VERSION);
    tls_.set_verify_mode(ssl::verify_peer, error);
    if (server_.ca_pem.empty()) {
      tls_.set_default_verify_paths(error);
      return {};
    }
    tls_.add_certificate_authority(asio::buffer(server_.ca_pem), error);
    if (error)
      return failure(FailureKind::invalid_argument, "the CA's file contains no PEM certificate: {}",
                     error.message());
    return {};
  }

  Answer<RawAnswer> ask(std::string_view method, std::string_view target, const std::string& body,
                        const RequestHeaders& headers) const override {
    const auto deadline = std::chrono::steady_clock::now() + settings_.patience;
    Connection connection(tls_);
    if (auto failed = connect(connection, deadline)) return tl::unexpected(std::move(*failed));
    StringRequest request = with_token(request_of(method, target, host_header()));
    set_body(request, body, headers);
    Parser response;
    response.body_limit(max_response_bytes);
    if (const auto error = exchange(connection.context, connection.stream, request, deadline, response))
      return tl::unexpected(lost(error));
    return answer_of(response);
  }

  WatchEnd watch(std::string_view target, const std::string& last_id,
                 const std::function<void(const StreamEvent&)>& act) const override {
    Connection connection(tls_);
    if (auto failed = connect(connection, std::chrono::steady_clock::now() + settings_.patience))
      return {std::move(*failed)};
    StringRequest request = with_token(request_of("GET", target, host_header()));
    request.set(http::field::accept, "text/event-stream");
    if (!last_id.empty()) request.set("Last-Event-ID", last_id);
    Watch<Stream> watch{connection.context, connection.stream, request, act, settings_.patience};
    watch.run();
    if (watch.result) return {lost(watch.result), watch.opened};
    if (watch.opened) return {lost(http::error::end_of_stream), true};
    return {refusal("GET", target, answer_of(watch.response))};
  }

  std::string address() const override { return std::string(scheme) + host_header(); }

 private:
  std::string host_header() const {
    const bool has_colon = server_.address.host.find(':') != std::string::npos;
    return fmt::format("{}{}{}:{}", has_colon ? "[" : "", server_.address.host, has_colon ? "]" : "",
                       server_.address.port);
  }
  StringRequest with_token(StringRequest request) const {
    if (!server_.token.empty()) request.set(http::field::authorization, "Bearer " + server_.token);
    return request;
  }
  api::Problem lost(const boost::system::error_code& error) const {
    if (error == beast::error::timeout)
      return problem("no response", fmt::format("the controller at {} did not respond within {} s", address(),
                                                settings_.patience.count()));
    return problem("no response", fmt::format("the connection to the controller at {} was lost: {}",
                                              address(), error.message()));
  }
  std::optional<api::Problem> connect(Connection& c, std::chrono::steady_clock::time_point deadline) const {
    boost::system::error_code error;
    asio::ip::tcp::resolver resolver(c.context);
    const auto found = resolver.resolve(server_.address.host, server_.address.port, error);
    if (error)
      return problem("unknown host", fmt::format("cannot find the host '{}': {}; check the context's server",
                                                 server_.address.host, error.message()));
    auto& tcp = beast::get_lowest_layer(c.stream);
    tcp.expires_at(deadline);
    tcp.async_connect(found, [&](boost::system::error_code failed, const auto&) { error = failed; });
    c.context.restart();
    c.context.run();
    if (error)
      return problem(
          "no controller",
          fmt::format("cannot connect to the controller at {}: {}; check the address, and that the "
                      "controller runs with --listen and --tls-cert",
                      address(), error.message()));
    return shake_hands(c, deadline);
  }
  std::optional<api::Problem> shake_hands(Connection& c,
                                          std::chrono::steady_clock::time_point deadline) const {
    SSL* const handle = c.stream.native_handle();
    const std::string& host = server_.address.host;
    X509_VERIFY_PARAM* const rules = SSL_get0_param(handle);
    // The name is checked by OpenSSL itself, so that its reason is known below.
    const bool is_set = is_address(host)
                            ? X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) == 1
                            : X509_VERIFY_PARAM_set1_host(rules, host.c_str(), host.size()) == 1 &&
                                  SSL_set_tlsext_host_name(handle, host.c_str()) == 1;
    if (!is_set) return problem("invalid host", fmt::format("'{}' is not a name of a host", host));
    boost::system::error_code error;
    beast::get_lowest_layer(c.stream).expires_at(deadline);
    c.stream.async_handshake(ssl::stream_base::client,
                             [&](boost::system::error_code failed) { error = failed; });
    c.context.restart();
    c.context.run();
    const long verified = SSL_get_verify_result(handle);
    if (error && verified != X509_V_OK)
      return problem("untrusted certificate",
                     fmt::format("the controller at {} is not trusted: {}", address(),
                                 certificate_problem(verified, server_.address, !server_.ca_pem.empty())));
    if (error)
      return problem("no TLS",
                     fmt::format("the server at {} does not speak TLS: {}; check the port, and that the "
                                 "controller runs with --tls-cert",
                                 address(), error.message()));
    return std::nullopt;
  }

  HttpsServer server_;
  Settings settings_;
  mutable ssl::context tls_;
};

bool is_port(const std::string& text) {
  return !text.empty() && text.size() <= 5 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }) && std::stoi(text) >= 1 &&
         std::stoi(text) <= 65535;
}

bool is_host(const std::string& text) {
  return !text.empty() && text.size() <= 253 && std::ranges::all_of(text, [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == ':' || c == '_';
  });
}

}  // namespace

Outcome<HttpsAddress> parse_https_address(const std::string& text) {
  const auto refuse = [&] {
    return failure(
        FailureKind::invalid_argument,
        "'{}' is not the address of a controller; use https://HOST:PORT, for example https://gpu.example:{}",
        text.substr(0, 200), default_port);
  };
  if (!text.starts_with(scheme)) return refuse();
  std::string rest = text.substr(scheme.size());
  if (rest.ends_with('/')) rest.pop_back();
  HttpsAddress out{.host = rest, .port = default_port};
  if (rest.starts_with('[')) {
    const size_t close = rest.find(']');
    if (close == std::string::npos) return refuse();
    out.host = rest.substr(1, close - 1);
    const std::string after = rest.substr(close + 1);
    if (!after.empty() && after[0] != ':') return refuse();
    if (!after.empty()) out.port = after.substr(1);
    if (!is_address(out.host)) return refuse();
  } else if (const size_t colon = rest.find(':'); colon != std::string::npos) {
    out = {.host = rest.substr(0, colon), .port = rest.substr(colon + 1)};
  }
  if (!is_host(out.host) || !is_port(out.port)) return refuse();
  return out;
}

Outcome<std::shared_ptr<const Remote>> https_remote(const HttpsServer& server, const Settings& settings) {
  auto out = std::make_shared<Https>(server, settings);
  if (const auto ready = out->prepare(); !ready) return tl::unexpected(ready.error());
  return out;
}

}  // namespace carve::client
