#include "kubernetes/api/client/connection.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "kubernetes/api/client/libcurl.h"
#include "objects/object.h"
#include "os/command_line.h"
#include "os/process.h"
#include "os/tcp.h"
#include "wire/api/json_value.h"
#include "yaml/documents.h"

namespace carve::kubernetes {
namespace {

using api::Json;

constexpr const char* other_ways = "use --apiserver URL --ca FILE --token-file FILE";

bool is_printable(char c) { return c > ' ' && c < 0x7f; }

std::string without_line_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

// Returns whether "HOST:PORT" is this machine, without a DNS lookup.
bool is_this_machine(const std::string& host_and_port) {
  if (host_and_port == "localhost" || host_and_port.starts_with("localhost:")) return true;
  const auto with_port = os::parse_tcp_address(host_and_port);
  const auto address = with_port ? with_port : os::parse_tcp_address(host_and_port + ":80");
  return address && os::is_loopback(*address);
}

Outcome<std::string> checked_server(std::string server, const std::string& where) {
  while (server.ends_with('/')) server.pop_back();
  const bool is_https = server.starts_with("https://");
  if (!is_https && !server.starts_with("http://"))
    return failure(FailureKind::invalid_argument, "{}: '{}' is not https://HOST:PORT", where,
                   server.substr(0, 80));
  const std::string rest = server.substr(is_https ? 8 : 7);
  const std::string host = rest.substr(0, rest.find('/'));
  if (host.empty() || host.starts_with(':') || !std::ranges::all_of(rest, is_printable) ||
      rest.find_first_of("@?#\\\"<>{}|^`") != std::string::npos)
    return failure(FailureKind::invalid_argument, "{}: '{}' is not https://HOST:PORT", where,
                   os::shown(server));
  if (!is_https && !is_this_machine(host))
    return failure(FailureKind::invalid_argument, "{}: {} would send the token unencrypted; write https://",
                   where, server.substr(0, 80));
  return server;
}

Outcome<void> check_pem(const std::string& pem, const char* kind, const std::string& where) {
  if (pem.find("-----BEGIN ENCRYPTED") != std::string::npos || pem.find(",ENCRYPTED") != std::string::npos)
    return failure(FailureKind::invalid_argument, "{}: the key is encrypted; store it without a passphrase",
                   where);
  const size_t begin = pem.find("-----BEGIN ");
  if (begin == std::string::npos || pem.find(std::string(kind) + "-----", begin) == std::string::npos)
    return failure(FailureKind::invalid_argument, "{}: there is no {} in PEM format", where, kind);
  return {};
}

// Decodes RFC 4648's base64, which may contain line breaks. Returns no value if the text is not base64.
std::optional<std::string> decoded_base64(std::string_view text) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  unsigned count = 0, padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const size_t value = alphabet.find(c);
    if (value == std::string_view::npos || padding > 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (++count % 4 != 0) continue;
    for (const int shift : {16, 8, 0}) out += static_cast<char>(bits >> shift & 0xff);
    bits = 0;
  }
  const unsigned rest = count % 4;
  if (rest == 1 || padding > 2 || (padding > 0 && rest + padding != 4)) return std::nullopt;
  if (rest >= 2) out += static_cast<char>(bits >> (rest == 2 ? 4 : 10) & 0xff);
  if (rest == 3) out += static_cast<char>(bits >> 2 & 0xff);
  return out;
}

// Reads a kubeconfig's current context. Stops at the first failure.
class Reader {
 public:
  Reader(const Json& root, const std::string& path, const ConnectionSources& sources)
      : root_(root), path_(path), sources_(sources) {}

  Outcome<Connection> read() {
    const std::string current = text(root_, "current-context");
    if (current.empty())
      return refusal("current-context is missing; set it with 'kubectl config use-context NAME'");
    const Json* context = named("contexts", "context", current);
    if (context == nullptr) return refusal("there is no context '{}'", os::shown(current));
    if (const std::string space = text(*context, "namespace"); !space.empty()) out_.name_space = space;
    const std::string cluster_name = text(*context, "cluster"), user_name = text(*context, "user");
    const Json* cluster = named("clusters", "cluster", cluster_name);
    if (cluster == nullptr) return refusal("there is no cluster '{}'", os::shown(cluster_name));
    if (auto read = read_cluster(*cluster, "cluster '" + os::shown(cluster_name) + "'"); !read)
      return tl::unexpected(read.error());
    if (user_name.empty()) return std::move(out_);
    const Json* user = named("users", "user", user_name);
    if (user == nullptr) return refusal("there is no user '{}'", os::shown(user_name));
    if (auto read = read_user(*user, "user '" + os::shown(user_name) + "'"); !read)
      return tl::unexpected(read.error());
    return std::move(out_);
  }

 private:
  template <class... A>
  tl::unexpected<Failure> refusal(fmt::format_string<A...> form, A&&... values) const {
    return failure(FailureKind::invalid_argument, "{}: {}", path_,
                   fmt::format(form, std::forward<A>(values)...));
  }
  // Returns a member's text. Empty if absent.
  static std::string text(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  }
  static bool has(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && !found->is_null() && !found->empty() && *found != Json(false) &&
           *found != Json("");
  }
  // Returns the member `member` of the entry with this name, or null if absent.
  const Json* named(const char* list, const char* member, const std::string& name) const {
    const auto entries = root_.find(list);
    if (entries == root_.end() || !entries->is_array()) return nullptr;
    for (const Json& entry : *entries) {
      if (!entry.is_object() || text(entry, "name") != name) continue;
      const auto found = entry.find(member);
      return found != entry.end() && found->is_object() ? &*found : nullptr;
    }
    return nullptr;
  }
  // Returns the PEM text from KEY-data, or from the file that KEY names. Empty if both are absent.
  Outcome<std::string> pem(const Json& object, const std::string& key, const char* kind,
                           const std::string& where) const {
    std::string out;
    const std::string data_key = key + "-data", field = where + ": " + key;
    if (const std::string data = text(object, data_key.c_str()); !data.empty()) {
      auto decoded = decoded_base64(data);
      if (!decoded) return refusal("{}-data is not base64", field);
      out = std::move(*decoded);
    } else if (const std::string file = text(object, key.c_str()); !file.empty()) {
      auto read = sources_.read_file(beside(file));
      if (!read) return tl::unexpected(read.error());
      out = std::move(*read);
    }
    if (out.size() > max_credential_bytes)
      return refusal("{} has {} bytes; it may have at most {}", field, out.size(), max_credential_bytes);
    if (out.empty()) return out;
    if (const auto checked = check_pem(out, kind, path_ + ": " + field); !checked)
      return tl::unexpected(checked.error());
    return out;
  }
  // Returns the path of a file relative to the kubeconfig's folder.
  std::string beside(const std::string& file) const {
    const size_t slash = path_.rfind('/');
    return file.starts_with('/') || slash == std::string::npos ? file : path_.substr(0, slash + 1) + file;
  }

  Outcome<void> read_cluster(const Json& cluster, const std::string& where) {
    if (has(cluster, "insecure-skip-tls-verify"))
      return refusal(
          "{} has insecure-skip-tls-verify, which would send the token to any server; "
          "set certificate-authority to the server's CA instead",
          where);
    if (has(cluster, "proxy-url"))
      return refusal("{} has proxy-url, which is not supported; {}", where, other_ways);
    if (has(cluster, "tls-server-name"))
      return refusal(
          "{} has tls-server-name, which is not supported; use a server address that is in the server's "
          "certificate",
          where);
    auto server = checked_server(text(cluster, "server"), path_ + ": " + where + ": server");
    if (!server) return tl::unexpected(server.error());
    auto ca = pem(cluster, "certificate-authority", "CERTIFICATE", where);
    if (!ca) return tl::unexpected(ca.error());
    out_.server = std::move(*server);
    out_.ca_pem = std::move(*ca);
    return {};
  }

  Outcome<void> read_user(const Json& user, const std::string& where) {
    for (const char* program : {"exec", "auth-provider"})
      if (has(user, program))
        return refusal(
            "{} has {}, but credential plugins are not supported; use a token or a client certificate, or {}",
            where, program, other_ways);
    for (const char* password : {"username", "password"})
      if (has(user, password))
        return refusal("{} has {}, which API servers no longer accept; use a token or a client certificate",
                       where, password);
    for (const char* other : {"as", "as-uid", "as-groups", "as-user-extra"})
      if (has(user, other))
        return refusal("{} has {}, which is not supported; use the token of the account that makes the calls",
                       where, other);
    auto certificate = pem(user, "client-certificate", "CERTIFICATE", where);
    if (!certificate) return tl::unexpected(certificate.error());
    auto key = pem(user, "client-key", "PRIVATE KEY", where);
    if (!key) return tl::unexpected(key.error());
    if (certificate->empty() != key->empty())
      return refusal("{} needs both client-certificate and client-key", where);
    out_.certificate_pem = std::move(*certificate);
    out_.key_pem = std::move(*key);
    return take_token(user, where);
  }

  // tokenFile takes precedence over token, because the file may change.
  Outcome<void> take_token(const Json& user, const std::string& where) {
    out_.token = text(user, "token");
    if (out_.token.size() > max_credential_bytes || !std::ranges::all_of(out_.token, is_printable))
      return refusal("{}: the token contains invalid characters", where);
    const std::string file = text(user, "tokenFile");
    if (file.empty()) return {};
    out_.token_file = beside(file);
    out_.token.clear();
    const auto token = read_token(out_.token_file, sources_);
    return token ? Outcome<void>() : tl::unexpected(token.error());
  }

  const Json& root_;
  const std::string& path_;
  const ConnectionSources& sources_;
  Connection out_;
};

Outcome<Connection> of_options(const ConnectionOptions& options, const ConnectionSources& sources) {
  if (!options.kubeconfig.empty())
    return failure(FailureKind::invalid_argument,
                   "--apiserver and --kubeconfig are mutually exclusive; leave one out");
  Connection out;
  auto server = checked_server(options.apiserver, "--apiserver");
  if (!server) return tl::unexpected(server.error());
  out.server = std::move(*server);
  if (!options.ca_file.empty()) {
    auto ca = sources.read_file(options.ca_file);
    if (!ca) return tl::unexpected(ca.error());
    if (const auto checked = check_pem(*ca, "CERTIFICATE", "--ca " + options.ca_file); !checked)
      return tl::unexpected(checked.error());
    out.ca_pem = std::move(*ca);
  }
  out.token_file = options.token_file;
  if (!out.token_file.empty())
    if (const auto token = read_token(out.token_file, sources); !token) return tl::unexpected(token.error());
  return out;
}

Outcome<Connection> of_pod(const ConnectionSources& sources) {
  std::string host = sources.environment("KUBERNETES_SERVICE_HOST");
  const std::string port = sources.environment("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty())
    return failure(FailureKind::invalid_argument, "not running in a pod; use --kubeconfig FILE, or {}",
                   other_ways);
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  const std::string folder = service_account_folder;
  auto out = of_options({.kubeconfig = "",
                         .apiserver = fmt::format("https://{}:{}", host, port),
                         .ca_file = folder + "/ca.crt",
                         .token_file = folder + "/token"},
                        sources);
  if (!out) return out;
  if (const auto space = sources.read_file(folder + "/namespace"); space && !space->empty())
    out->name_space = without_line_end(*space);
  return out;
}

}  // namespace

ConnectionSources this_machine() {
  return {.environment =
              [](const char* name) {
                const char* const value = std::getenv(name);
                return std::string(value != nullptr ? value : "");
              },
          .read_file = [](const std::string& path) -> Outcome<std::string> {
            auto text = os::read_file(path, api::max_document_bytes + 1);
            if (!text) return failure(FailureKind::not_found, "the file {} cannot be read", path);
            return std::move(*text);
          }};
}

Outcome<std::string> read_token(const std::string& path, const ConnectionSources& sources) {
  auto text = sources.read_file(path);
  if (!text) return text;
  std::string token = without_line_end(std::move(*text));
  if (token.empty()) return failure(FailureKind::invalid_argument, "the file {} contains no token", path);
  if (token.size() > max_credential_bytes || !std::ranges::all_of(token, is_printable))
    return failure(FailureKind::invalid_argument,
                   "the token in {} is too long or contains invalid characters", path);
  return token;
}

Outcome<Connection> read_kubeconfig(std::string_view text, const std::string& path,
                                    const ConnectionSources& sources) {
  const auto documents = yaml::documents_of(text);
  if (!documents)
    return failure(FailureKind::invalid_argument, "{}: {}", path, documents.error().front().message);
  if (documents->size() != 1)
    return failure(FailureKind::invalid_argument, "{}: {} documents; a kubeconfig must have exactly one",
                   path, documents->size());
  const auto root = api::parse(documents->front(), api::Decimals::as_texts);
  if (!root) return failure(FailureKind::invalid_argument, "{}: {}", path, root.error());
  return Reader(*root, path, sources).read();
}

Outcome<Connection> find_connection(const ConnectionOptions& options, const ConnectionSources& sources) {
  if (const auto library = load_libcurl(); !library) return tl::unexpected(library.error());
  if (!options.apiserver.empty()) return of_options(options, sources);
  if (!options.ca_file.empty() || !options.token_file.empty())
    return failure(FailureKind::invalid_argument, "--ca and --token-file require --apiserver URL; add it");
  if (options.kubeconfig.empty()) return of_pod(sources);
  const auto text = sources.read_file(options.kubeconfig);
  if (!text) return tl::unexpected(text.error());
  return read_kubeconfig(*text, options.kubeconfig, sources);
}

}  // namespace carve::kubernetes
