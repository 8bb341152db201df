#include "controller/api/controller_routes.h"

#include <algorithm>
#include <ranges>

#include "controller/api/object_routes.h"
#include "controller/api/token_routes.h"
#include "os/log.h"

namespace carve::controller {
namespace {

using K = FailureKind;

constexpr size_t max_shown_path_bytes = 80;
constexpr size_t max_shown_method_bytes = 20;

http::Response get_version(const Call& call) { return document(call.context.views.version()); }
http::Response get_nodes(const Call& call) { return document(call.context.views.nodes()); }

constexpr Route table[] = {
    {"GET", "/v1/version", get_version},
    {"GET", "/v1/nodes", get_nodes},
    {"POST", "/v1/documents", post_documents},
    {"GET", "/v1/services", list_services},
    {"POST", "/v1/services", post_documents},
    {"GET", "/v1/services/{}", get_service},
    {"PUT", "/v1/services/{}", put_service},
    {"PATCH", "/v1/services/{}", patch_service},
    {"DELETE", "/v1/services/{}", delete_service},
    {"GET", "/v1/services/{}/logs", get_service_logs},
    {"POST", "/v1/services/{}/modify", modify_service},
    {"POST", "/v1/services/{}/start", start_service},
    {"POST", "/v1/services/{}/stop", stop_service},
    {"GET", "/v1/tokens", list_tokens},
    {"POST", "/v1/tokens", post_token},
    {"DELETE", "/v1/tokens/{}", delete_token},
};

// Returns the names in the path if it has the pattern.
std::optional<std::vector<std::string>> names_in(std::string_view path, std::string_view pattern) {
  std::vector<std::string> names;
  while (true) {
    const size_t hole = pattern.find("{}");
    if (hole == std::string_view::npos) return path == pattern ? std::optional(names) : std::nullopt;
    if (!path.starts_with(pattern.substr(0, hole))) return std::nullopt;
    path.remove_prefix(hole);
    pattern.remove_prefix(hole + 2);
    const size_t end = std::min(path.find('/'), path.size());
    if (end == 0) return std::nullopt;
    names.emplace_back(path.substr(0, end));
    path.remove_prefix(end);
  }
}

}  // namespace

std::span<const Route> routes() { return table; }

size_t body_limit(std::string_view method, std::string_view path) {
  const bool has_document = method != "GET" && !path.starts_with("/v1/tokens");
  return has_document ? objects::max_document_bytes : http::max_body_bytes;
}

Result<http::Caller, http::Response> ControllerRoutes::identified(const http::Request& request,
                                                                  const http::Caller& caller) {
  if (!caller.anonymous()) return caller;
  const int64_t now = context_.views.now_ns();
  const std::string address = caller.address().substr(0, caller.address().rfind(':'));
  if (!wrong_tokens_.may_try(address, now))
    return tl::unexpected(refuse(K::resource_exhausted,
                                 fmt::format("{} wrong tokens came from {} within a minute; try again later",
                                             WrongTokens::max_attempts, address)));
  if (const auto token = http::bearer_token(request.headers)) {
    if (auto known = context_.tokens.caller(*token, now)) return *known;
    wrong_tokens_.failed(address, now);
    return tl::unexpected(refuse(K::unauthenticated,
                                 "the token is unknown or has expired; carve token create makes a new one"));
  }
  return tl::unexpected(
      refuse(K::unauthenticated,
             "the caller is not identified; send a token (Authorization: Bearer), or connect "
             "to the controller's unix socket, which names its user"));
}

http::Response ControllerRoutes::answer(const http::Request& request, const http::Caller& anonymous) {
  auto caller = identified(request, anonymous);
  if (!caller) return std::move(caller.error());
  bool has_path = false;
  for (const Route& route : table) {
    auto names = names_in(request.path, route.path);
    if (!names) continue;
    has_path = true;
    if (request.method != route.method) continue;
    http::Response response = route.answer({context_, request, *caller, std::move(*names)});
    if (request.method == "GET")
      os::log::debug("{} {} by {}: {}", request.method, request.path, caller->text(), response.status);
    else
      os::log::info("{} {} by {}: {}", request.method, request.path, caller->text(), response.status);
    return response;
  }
  const std::string path = request.path.substr(0, max_shown_path_bytes);
  if (has_path)
    return refuse(K::invalid_argument,
                  fmt::format("{} has no method {}", path, request.method.substr(0, max_shown_method_bytes)),
                  405);
  return refuse(K::not_found, fmt::format("there is no {}; the controller has {}", path,
                                          fmt::join(table | std::views::transform(&Route::path), ", ")));
}

http::Response refuse_bytes(unsigned status, std::string detail) {
  const bool exhausted = status == shown(K::resource_exhausted).http_status;
  return refuse(exhausted ? K::resource_exhausted : K::invalid_argument, std::move(detail), status);
}

}  // namespace carve::controller
