#include "controller/api/controller_routes.h"

#include <algorithm>

#include "controller/api/console_files.h"
#include "controller/api/idempotency.h"
#include "controller/api/present_status.h"
#include "controller/api/session_routes.h"
#include "http/files.h"
#include "os/log.h"

namespace carve::controller {
namespace {

constexpr size_t max_shown_path_bytes = 80;
constexpr size_t max_shown_method_bytes = 20;

// The values of the placeholders in a path's pattern.
struct PathParts {
  objects::Kind kind = objects::Kind::service;
  std::vector<std::string> names;
};

constexpr std::string_view kind_hole = "{kind}", name_hole = "{}";

// Returns one part of a path, decoded; no value if it contains a slash or a control character, which no name
// has.
std::optional<std::string> name_of(std::string_view part) {
  auto name = http::percent_decoded(part);
  const auto is_wrong = [](unsigned char c) { return c == '/' || c < ' '; };
  if (!name || name->empty() || std::ranges::any_of(*name, is_wrong)) return std::nullopt;
  return name;
}

// Returns the parts if the path matches the pattern. {kind} matches the plural of a kind with replicas.
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
      auto name = name_of(part);
      if (!name) return std::nullopt;
      parts.names.push_back(std::move(*name));
      pattern.remove_prefix(name_hole.size());
    }
    path.remove_prefix(end);
  }
}

}  // namespace

size_t body_limit(std::string_view method, std::string_view path) {
  const bool has_document = method != "GET" && !path.starts_with("/v1/tokens");
  return has_document ? api::max_document_bytes : http::max_body_bytes;
}

ControllerRoutes::ControllerRoutes(ApiContext context)
    : context_(std::move(context)),
      change_context_(context_),
      watches_(context_.objects, present_status(context_.views)) {
  context_.watches = &watches_;
  change_context_.events = nullptr;
  change_context_.node_actions = nullptr;
  change_context_.read_documents = nullptr;
  context_.answer_read = [this](const http::Request& request, const http::Caller& connection,
                                const ReadDocuments& documents) {
    return answer(request, connection, &documents);
  };
}

Result<ControllerRoutes::Sender, http::Response> ControllerRoutes::identified(const http::Request& request,
                                                                              const http::Caller& caller) {
  if (!caller.anonymous()) return Sender{caller};
  if (!caller.address().empty())
    if (auto refusal = context_.hosts.refusal(request.headers))
      return tl::unexpected(refuse(FailureKind::permission_denied, std::move(*refusal)));
  const int64_t now = context_.views.now_ns();
  // Users of this machine share one address. Wrong tokens of one user do not block it for the others.
  const std::string origin = caller.origin();
  if (!wrong_tokens_.may_try(origin, now))
    return tl::unexpected(
        refuse(FailureKind::resource_exhausted,
               fmt::format("{} invalid tokens were sent from {} within a minute; try again later",
                           WrongTokens::max_attempts, origin)));
  if (const auto token = http::bearer_token(request.headers)) {
    if (auto known = context_.tokens.caller(*token, now)) return Sender{std::move(*known)};
    wrong_tokens_.failed(origin, now);
    return tl::unexpected(
        refuse(FailureKind::unauthenticated,
               "the token is unknown or has expired; create a new one with carve token create"));
  }
  if (context_.sessions != nullptr) {
    if (auto session = session_of(request, *context_.sessions, now)) {
      auto known = http::Caller::token(session->account, session->role);
      return Sender{std::move(known), std::move(session)};
    }
    if (is_sign_in(request)) return Sender{caller};
  }
  return tl::unexpected(refuse(FailureKind::unauthenticated,
                               "the caller is not identified; send a token (Authorization: Bearer), or "
                               "connect to the controller's unix socket, which identifies the user"));
}

// Every response to a request other than GET is written to the audit log, including rejections.
http::Response ControllerRoutes::answer(const http::Request& request, const http::Caller& connection,
                                        const ReadDocuments* documents) {
  if (context_.console != nullptr && connection.anonymous())
    if (auto file = context_.console->answer(request)) return std::move(*file);
  auto sender = identified(request, connection);
  http::Response response =
      sender ? answer_identified(request, *sender, connection, documents) : std::move(sender.error());
  if (request.method == "GET") return response;
  if (is_sign_in(request) && response.status == shown(FailureKind::unauthenticated).http_status)
    wrong_tokens_.failed(connection.origin(), context_.views.now_ns());
  if (std::holds_alternative<http::LaterContent>(response.content))
    return response;  // Logged when the request is handled again.
  audit(request, sender ? sender->caller : connection, connection, response.status);
  return response;
}

void ControllerRoutes::audit(const http::Request& request, const http::Caller& caller,
                             const http::Caller& connection, unsigned status) {
  const std::string address = connection.address();
  context_.audit({.caller = caller.text(),
                  .address = address.empty() ? "unix" : address,
                  .change = request.method.substr(0, max_shown_method_bytes) + " " +
                            request.path.substr(0, max_shown_path_bytes),
                  .status = status});
}

namespace {

// Returns whether the request may change objects. Tokens, sessions and codes are not objects.
bool changes_objects(const http::Request& request) {
  constexpr std::string_view others[] = {"/v1/tokens", "/v1/session", "/v1/codes"};
  return request.method != "GET" &&
         std::ranges::none_of(others, [&](std::string_view path) { return request.path.starts_with(path); });
}

}  // namespace

// The changes of one caller are carried out in the order of its requests.
http::Response ControllerRoutes::change_later(const http::Request& request, const Sender& sender,
                                              const http::Caller& connection) {
  return context_.change_objects(sender.caller.text(),
                                 [this, request, sender, connection]() -> std::function<http::Response()> {
                                   auto response = std::make_shared<http::Response>(
                                       answer_route(change_context_, request, sender, nullptr, nullptr));
                                   return [this, request, sender, connection, response] {
                                     audit(request, sender.caller, connection, response->status);
                                     return std::move(*response);
                                   };
                                 });
}

http::Response ControllerRoutes::answer_identified(const http::Request& request, const Sender& sender,
                                                   const http::Caller& connection,
                                                   const ReadDocuments* documents) {
  const http::Caller& caller = sender.caller;
  if (const std::string* slice = caller.slice())
    return refuse(FailureKind::called_from_slice,
                  fmt::format("process {} runs in slice {}; call the controller from a process outside of "
                              "slices, or with a token",
                              caller.process()->pid, *slice));
  if (context_.change_objects != nullptr && changes_objects(request))
    return change_later(request, sender, connection);
  return answer_route(context_, request, sender, &connection, documents);
}

http::Response ControllerRoutes::answer_route(ApiContext& context, const http::Request& request,
                                              const Sender& sender, const http::Caller* connection,
                                              const ReadDocuments* documents) {
  const http::Caller& caller = sender.caller;
  bool has_path = false;
  for (const Route& route : routes()) {
    auto parts = parts_of(request.path, route.path);
    if (!parts) continue;
    has_path = true;
    if (request.method != route.method) continue;
    const Call call{.context = context,
                    .request = request,
                    .caller = caller,
                    .kind = route.kind.value_or(parts->kind),
                    .names = std::move(parts->names),
                    .session = sender.session ? &*sender.session : nullptr,
                    .connection = connection,
                    .documents = documents};
    const ChangesBy changes(caller.text());
    http::Response response = context.answers == nullptr
                                  ? route.answer(call)
                                  : answer_once(request, caller, *context.answers, context.views.now_ns(),
                                                [&] { return route.answer(call); });
    if (std::holds_alternative<http::LaterContent>(response.content)) return response;
    const std::string_view path = std::string_view(request.path).substr(0, max_shown_path_bytes);
    if (request.method == "GET")
      os::log::debug("{} {} by {}: {}", request.method, path, caller.text(), response.status);
    else
      os::log::info(caller.cause(), "{} {} by {}: {}", request.method, path, caller.text(), response.status);
    return response;
  }
  const std::string path = request.path.substr(0, max_shown_path_bytes);
  if (has_path)
    return refuse(FailureKind::invalid_argument,
                  fmt::format("{} does not support the method {}", path,
                              request.method.substr(0, max_shown_method_bytes)),
                  405);
  std::vector<std::string_view> paths;
  for (const Route& route : routes())
    if (std::ranges::find(paths, route.path) == paths.end()) paths.emplace_back(route.path);
  return refuse(FailureKind::not_found,
                fmt::format("there is no path {}; the controller serves {}", path, fmt::join(paths, ", ")));
}

http::Response refuse_bytes(unsigned status, std::string detail) {
  FailureKind kind = FailureKind::invalid_argument;
  for (const FailureKind other : {FailureKind::resource_exhausted, FailureKind::unauthenticated})
    if (status == shown(other).http_status) kind = other;
  return refuse(kind, std::move(detail), status);
}

}  // namespace carve::controller
