#include "controller/api/session_routes.h"

#include <algorithm>

#include "os/log.h"

namespace carve::controller {
namespace {

constexpr std::string_view session_path = "/v1/session";
constexpr const char* page_key_header = "Carve-Page-Key";

std::string account_of(const Call& call) {
  const std::string* account = call.caller.token_account();
  return account != nullptr ? *account : call.context.views.user_name(call.caller.uid().value_or(0));
}

// Returns the name of the cookie for the port in the request's Host header.
std::string cookie_name(const http::Request& request) {
  const std::string* host = request.headers.find("Host");
  const size_t colon = host == nullptr ? std::string::npos : host->rfind(':');
  std::string port = colon == std::string::npos ? "" : host->substr(colon + 1);
  if (!std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; })) port.clear();
  return port.empty() ? "carve_session" : "carve_session_" + port;
}

// Returns the value of the cookie, or no value if the request has no Cookie header or several (RFC 6265,
// section 5.4).
std::optional<std::string_view> cookie_of(const http::Request& request) {
  const std::string* header = request.headers.find("Cookie");
  if (header == nullptr || request.headers.count("Cookie") != 1) return std::nullopt;
  const std::string name = cookie_name(request) + "=";
  for (std::string_view rest = *header; !rest.empty();) {
    const size_t end = std::min(rest.find(';'), rest.size());
    std::string_view pair = rest.substr(0, end);
    pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
    if (pair.starts_with(name)) return pair.substr(name.size());
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
}

http::Header set_cookie(const Call& call, std::string_view value, int64_t seconds) {
  const bool is_secure = call.context.views.version().endpoint.starts_with("https:");
  return {"Set-Cookie", fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}{}",
                                    cookie_name(call.request), value, seconds, is_secure ? "; Secure" : "")};
}

api::SessionView session_view(const Session& session) {
  return {.name = session.name,
          .role = std::string(text(session.role)),
          .account = session.account,
          .expires_ns = static_cast<uint64_t>(session.expires_ns),
          .page_key = ""};
}

http::Response refuse_sign_in(const char* message) { return refuse(FailureKind::unauthenticated, message); }

// Returns the rights that the request's code or token gives, or the response that rejects it.
Result<SignIn, http::Response> rights_of(const Call& call, const api::SignInRequest& wanted) {
  const int64_t now = call.context.views.now_ns();
  if (wanted.code.empty() == wanted.token.empty())
    return tl::unexpected(refuse(FailureKind::invalid_argument, "set exactly one of code and token"));
  if (!wanted.code.empty()) {
    auto rights = call.context.sessions->redeem(wanted.code, now);
    if (!rights)
      return tl::unexpected(
          refuse_sign_in("the code is unknown, was already used, or is older than 5 minutes; get a new one "
                         "with carve console"));
    return std::move(*rights);
  }
  const auto token = call.context.tokens.find(wanted.token, now);
  if (!token)
    return tl::unexpected(
        refuse_sign_in("the token is unknown or has expired; create a new one with carve token create"));
  return SignIn{
      .role = token->role, .account = token->account, .token = token->name, .expires_ns = token->expires_ns};
}

}  // namespace

bool is_sign_in(const http::Request& request) {
  return request.method == "POST" && request.path == session_path;
}

std::optional<Session> session_of(const http::Request& request, const SessionBook& sessions, int64_t now_ns) {
  const auto cookie = cookie_of(request);
  const std::string* page_key = request.headers.find(page_key_header);
  if (!cookie || page_key == nullptr) return std::nullopt;
  return sessions.find(*cookie, *page_key, now_ns);
}

http::Response post_code(const Call& call) {
  if (call.context.sessions == nullptr || !call.context.views.version().console)
    return refuse(FailureKind::failed_precondition,
                  "this controller serves no console; start it with --console DIR and with a TCP address");
  // Otherwise a session could create its successor, and so outlive its token or an operator who ends it.
  if (call.session != nullptr)
    return refuse(
        FailureKind::permission_denied,
        "a session of a browser cannot create codes; run carve console on the controller's machine");
  const int64_t now = call.context.views.now_ns();
  SignIn rights{.role = role_of(call.caller), .account = account_of(call)};
  // A code of a token gives no rights beyond the token's lifetime.
  if (const auto token = http::bearer_token(call.request.headers))
    if (const auto known = call.context.tokens.find(*token, now)) {
      rights.token = known->name;
      rights.expires_ns = known->expires_ns;
    }
  const auto code = call.context.sessions->issue_code(rights, now);
  if (!code) return refuse(code.error());
  return document(api::SignInCode{.code = *code,
                                  .path = "/login?code=" + *code,
                                  .expires_ns = static_cast<uint64_t>(now + code_lifetime_ns)},
                  201);
}

http::Response get_session(const Call& call) {
  if (call.session != nullptr) return document(session_view(*call.session));
  return document(api::SessionView{.name = "",
                                   .role = std::string(text(role_of(call.caller))),
                                   .account = account_of(call),
                                   .expires_ns = 0,
                                   .page_key = ""});
}

http::Response post_session(const Call& call) {
  if (call.context.sessions == nullptr)
    return refuse(FailureKind::failed_precondition, "this controller has no sessions");
  const auto wanted = api::read<api::SignInRequest>(call.request.body, api::Reading::strict);
  if (!wanted) return refuse(FailureKind::invalid_argument, wanted.error());
  auto rights = rights_of(call, *wanted);
  if (!rights) return std::move(rights.error());
  const auto begun = call.context.sessions->begin(*rights, call.context.views.now_ns());
  if (!begun) return refuse(begun.error());
  const Session& session = begun->session;
  os::log::info("{} of account {} began with {}", session.name, session.account,
                session.token.empty() ? "a code" : "token " + session.token);
  api::SessionView view = session_view(session);
  view.page_key = begun->page_key;
  http::Response response = document(view, 201);
  response.headers.push_back(
      set_cookie(call, begun->cookie, (session.expires_ns - session.created_ns) / 1'000'000'000));
  return response;
}

http::Response delete_session(const Call& call) {
  if (call.session == nullptr) return refuse(FailureKind::not_found, "the caller has no session");
  if (const auto removed = call.context.sessions->remove(call.session->name); !removed)
    return refuse(removed.error());
  http::Response response = document(api::Nothing{});
  response.headers.push_back(set_cookie(call, "", 0));
  return response;
}

}  // namespace carve::controller
