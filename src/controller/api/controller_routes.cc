#include "controller/api/controller_routes.h"

#include <algorithm>
#include <ranges>

#include "controller/api/idempotency.h"
#include "controller/api/object_routes.h"
#include "controller/api/token_routes.h"
#include "controller/api/watch_routes.h"
#include "controller/api/workload_routes.h"
#include "os/log.h"
#include "wire/api/exposition.h"

namespace carve::controller {
namespace {

using K = FailureKind;

constexpr size_t max_shown_path_bytes = 80;
constexpr size_t max_shown_method_bytes = 20;

http::Response get_version(const Call& call) { return document(call.context.views.version()); }
http::Response get_nodes(const Call& call) { return document(call.context.views.nodes()); }

http::Response get_metrics(const Call& call) {
  return {200, api::metrics_type, call.context.views.metrics()};
}

constexpr Route table[] = {
    {"GET", "/v1/version", get_version},
    {"GET", "/v1/nodes", get_nodes},
    {"GET", "/v1/watch", watch},
    {"POST", "/v1/documents", post_documents},
    {"GET", "/v1/{kind}", list_objects},
    {"POST", "/v1/{kind}", post_documents},
    {"GET", "/v1/{kind}/{}", get_object},
    {"PUT", "/v1/{kind}/{}", put_object},
    {"PATCH", "/v1/{kind}/{}", patch_object},
    {"DELETE", "/v1/{kind}/{}", delete_object},
    {"GET", "/v1/{kind}/{}/logs", get_logs},
    {"GET", "/v1/{kind}/{}/revisions", get_revisions},
    {"POST", "/v1/{kind}/{}/modify", modify},
    {"POST", "/v1/{kind}/{}/restart", restart},
    {"POST", "/v1/{kind}/{}/start", start},
    {"POST", "/v1/{kind}/{}/stop", stop},
    {"POST", "/v1/{kind}/{}/undo", undo},
    {"GET", "/v1/tokens", list_tokens},
    {"POST", "/v1/tokens", post_token},
    {"DELETE", "/v1/tokens/{}", delete_token},
    {"GET", "/metrics", get_metrics},
};

// What a path has in the holes of its pattern.
struct PathParts {
  objects::Kind kind = objects::Kind::service;
  std::vector<std::string> names;
};

constexpr std::string_view kind_hole = "{kind}", name_hole = "{}";

// Returns the parts if the path has the pattern. {kind} is the plural of a kind with replicas.
std::optional<PathParts> parts_of(std::string_view path, std::string_view pattern) {
  PathParts parts;
  while (true) {
    const size_t hole = pattern.find('{');
    if (hole == std::string_view::npos) return path == pattern ? std::optional(parts) : std::nullopt;
    if (!path.starts_with(pattern.substr(0, hole))) return std::nullopt;
    path.remove_prefix(hole);
    pattern.remove_prefix(hole);
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    if (part.empty()) return std::nullopt;
    if (pattern.starts_with(kind_hole)) {
      const auto* const kind = std::ranges::find(objects::kinds, part, &objects::KindText::plural);
      if (kind == std::end(objects::kinds) || !kind->is_workload) return std::nullopt;
      parts.kind = kind->value;
      pattern.remove_prefix(kind_hole.size());
    } else {
      parts.names.emplace_back(part);
      pattern.remove_prefix(name_hole.size());
    }
    path.remove_prefix(end);
  }
}

}  // namespace

std::span<const Route> routes() { return table; }

size_t body_limit(std::string_view method, std::string_view path) {
  const bool has_document = method != "GET" && !path.starts_with("/v1/tokens");
  return has_document ? objects::max_document_bytes : http::max_body_bytes;
}

ControllerRoutes::ControllerRoutes(ApiContext context)
    : context_(std::move(context)), watches_(context_.objects) {
  context_.watches = &watches_;
}

Result<http::Caller, http::Response> ControllerRoutes::identified(const http::Request& request,
                                                                  const http::Caller& caller) {
  if (!caller.anonymous()) return caller;
  if (!caller.address().empty())
    if (auto refusal = context_.hosts.refusal(request.headers))
      return tl::unexpected(refuse(K::permission_denied, std::move(*refusal)));
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

// Every answer to a request that is no GET is in the audit log, also those that refuse.
http::Response ControllerRoutes::answer(const http::Request& request, const http::Caller& connection) {
  auto caller = identified(request, connection);
  http::Response response = caller ? answer_identified(request, *caller) : std::move(caller.error());
  if (request.method == "GET") return response;
  const std::string address = connection.address();
  context_.audit({.caller = caller ? caller->text() : connection.text(),
                  .address = address.empty() ? "unix" : address,
                  .change = request.method.substr(0, max_shown_method_bytes) + " " +
                            request.path.substr(0, max_shown_path_bytes),
                  .status = response.status});
  return response;
}

http::Response ControllerRoutes::answer_identified(const http::Request& request, const http::Caller& caller) {
  bool has_path = false;
  for (const Route& route : table) {
    auto parts = parts_of(request.path, route.path);
    if (!parts) continue;
    has_path = true;
    if (request.method != route.method) continue;
    const Call call{context_, request, caller, parts->kind, std::move(parts->names)};
    http::Response response = context_.answers == nullptr
                                  ? route.answer(call)
                                  : answer_once(request, caller, *context_.answers, context_.views.now_ns(),
                                                [&] { return route.answer(call); });
    if (request.method == "GET")
      os::log::debug("{} {} by {}: {}", request.method, request.path, caller.text(), response.status);
    else
      os::log::info("{} {} by {}: {}", request.method, request.path, caller.text(), response.status);
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
