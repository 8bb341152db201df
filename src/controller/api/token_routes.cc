#include "controller/api/token_routes.h"

#include <algorithm>

namespace carve::controller {
namespace {

constexpr size_t max_token_name_bytes = 48;
constexpr int64_t max_token_days = 3650;
constexpr int64_t day_ns = 86'400'000'000'000;

bool is_token_name(const std::string& name) {
  return !name.empty() && name.size() <= max_token_name_bytes && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

api::TokenView view_of(const Token& token) {
  return {.name = token.name,
          .role = std::string(text(token.role)),
          .account = token.account,
          .created_ns = static_cast<uint64_t>(token.created_ns),
          .expires_ns = static_cast<uint64_t>(token.expires_ns),
          .session = false};
}

api::TokenView view_of(const Session& session) {
  return {.name = session.name,
          .role = std::string(text(session.role)),
          .account = session.account,
          .created_ns = static_cast<uint64_t>(session.created_ns),
          .expires_ns = static_cast<uint64_t>(session.expires_ns),
          .session = true};
}

http::Response refuse_others() {
  return refuse(FailureKind::permission_denied,
                "only operators may create and list tokens: root, the controller's own user, and tokens with "
                "the role operator");
}

}  // namespace

http::Response list_tokens(const Call& call) {
  if (!call.caller.may_operate()) return refuse_others();
  api::TokenList out;
  for (const Token& token : call.context.tokens.list()) out.items.push_back(view_of(token));
  if (const SessionBook* sessions = call.context.sessions)
    for (const Session& session : sessions->list(call.context.views.now_ns()))
      out.items.push_back(view_of(session));
  return document(out);
}

http::Response post_token(const Call& call) {
  if (!call.caller.may_operate()) return refuse_others();
  const auto request = api::read<api::TokenRequest>(call.request.body, api::Reading::strict);
  if (!request) return refuse(FailureKind::invalid_argument, request.error());
  if (!is_token_name(request->name))
    return refuse(FailureKind::invalid_argument,
                  fmt::format("'{}' is not a valid token name; use 1 to {} characters from a-z, 0-9 and -",
                              request->name.substr(0, 80), max_token_name_bytes));
  if (request->name.starts_with(session_name_prefix))
    return refuse(
        FailureKind::invalid_argument,
        fmt::format("'{}' is not a valid token name; names that start with {} are those of sessions",
                    request->name, session_name_prefix));
  const auto role = parse_role(request->role);
  if (!role)
    return refuse(FailureKind::invalid_argument,
                  fmt::format("role '{}': use viewer, user or operator", request->role.substr(0, 80)));
  if (request->days > static_cast<uint64_t>(max_token_days))
    return refuse(FailureKind::invalid_argument,
                  fmt::format("a token is valid for at most {} days", max_token_days));
  const std::string account = request->account.empty()
                                  ? call.context.views.user_name(call.caller.uid().value_or(0))
                                  : request->account;
  if (*role == http::Role::user && !call.context.views.uid_of(account))
    return refuse(FailureKind::failed_precondition,
                  fmt::format("account '{}': programs of a token run as the user with that name, but this "
                              "machine has no such user; create the user, or use the role viewer",
                              account.substr(0, 80)));
  // Otherwise an operator over TCP could start programs as root.
  if (call.context.views.uid_of(account) == 0u && call.caller.uid() != 0u)
    return refuse(FailureKind::permission_denied,
                  fmt::format("account '{}': only root may create tokens whose programs run as root, and "
                              "only through the controller's unix socket",
                              account.substr(0, 80)));
  const int64_t now = call.context.views.now_ns();
  const Token token{
      .name = request->name,
      .role = *role,
      .account = account,
      .sha256 = "",
      .created_ns = now,
      .expires_ns = request->days == 0 ? 0 : now + static_cast<int64_t>(request->days) * day_ns};
  const auto whole = call.context.tokens.add(token);
  if (!whole) return refuse(whole.error());
  return document(api::TokenMade{.name = request->name, .token = *whole}, 201);
}

http::Response delete_token(const Call& call) {
  if (!call.caller.may_operate()) return refuse_others();
  const std::string& name = call.names[0];
  SessionBook* const sessions = call.context.sessions;
  const bool is_session = sessions != nullptr && name.starts_with(session_name_prefix);
  const auto removed = is_session ? sessions->remove(name) : call.context.tokens.remove(name);
  if (!removed) return refuse(removed.error());
  if (sessions != nullptr && !is_session)
    if (const auto ended = sessions->remove_of_token(name); !ended) return refuse(ended.error());
  return document(api::Nothing{});
}

}  // namespace carve::controller
