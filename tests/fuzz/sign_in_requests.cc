// Any bytes of a browser that has not been identified, to a controller with one session and one token whose
// secrets are known here. A request may have the session's rights only if it contains the cookie and the page
// key, a sign-in may begin a session only if it contains the token, and no response may show a secret that
// the request doesn't contain.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "controller/api/controller_routes.h"
#include "controller/api/session_routes.h"
#include "controller/api/testing/routes_fake.h"
#include "controller/api/testing/views_fake.h"
#include "controller/objects/secret_text.h"
#include "os/log.h"

namespace {

using namespace carve;
using namespace carve::controller;

constexpr std::string_view cookie = "COOKIECOOKIECOOKIECOOKIECOOKIECOOKIECOOKIEC";
constexpr std::string_view page_key = "PAGEKEYPAGEKEYPAGEKEYPAGEKEYPAGEKEYPAGEKEYP";
constexpr std::string_view token = "carve_TOKENTOKENTOKENTOKENTOKENTOKENTOKENTOKENT";

struct FuzzedBrowser {
  ViewsFake views;
  JournalFake journal;
  JournaledRegistry objects{journal, {}, 0};
  TokenBook tokens{
      journal,
      {{.name = "laptop", .role = http::Role::user, .account = "research", .sha256 = sha256_hex(token)}}};
  SessionBook sessions{journal,
                       {{.name = "session-known",
                         .role = http::Role::operate,
                         .account = "root",
                         .token = "",
                         .cookie_sha256 = sha256_hex(cookie),
                         .page_key_sha256 = sha256_hex(page_key),
                         .created_ns = 0,
                         .expires_ns = INT64_MAX}}};
  ControllerRoutes routes{{.views = views,
                           .audit = [](const AuditLine&) {},
                           .objects = objects,
                           .tokens = tokens,
                           .sessions = &sessions}};
};

bool shows(std::string_view text, const http::Response& response) {
  if (const auto* body = std::get_if<std::string>(&response.content);
      body != nullptr && body->find(text) != std::string::npos)
    return true;
  for (const http::Header& header : response.headers)
    if (header.value.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool is_quiet = os::log::set_level("error");
  if (!is_quiet) abort();
  FuzzedBrowser controller;
  const uint64_t version = controller.objects.version();
  const http::Caller browser = http::Caller::remote("127.0.0.1:5");
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto has = [&](std::string_view secret) { return input.find(secret) != input.npos; };
  const auto answer = [&](const http::Request& request) {
    const bool is_known = session_of(request, controller.sessions, 0).has_value();
    if (is_known && !(has(cookie) && has(page_key))) abort();
    http::Response response = controller.routes.answer(request, browser);
    for (const std::string_view secret : {cookie, page_key, token})
      if (shows(secret, response) && !has(secret) && request.body.find(secret) == std::string::npos) abort();
    return response;
  };
  http::Conversation conversation({.handle = answer, .refuse = refuse_bytes, .body_limit = body_limit}, 0);
  std::string_view left = input;
  while (!conversation.is_over() && !left.empty()) {
    const std::string_view bytes = left.substr(0, 4096);
    left.remove_prefix(bytes.size());
    conversation.receive(bytes, 0);
    for (std::string_view out; !(out = conversation.unsent()).empty();) conversation.sent(out.size(), 0);
    conversation.tick(0);
  }
  // JSON can write a character as \u0043, so the token need not be in the bytes of the input.
  const bool may_sign_in = has(token) || has("\\u");
  if (controller.sessions.list(0).size() > 1 && !may_sign_in) abort();
  const bool has_rights = (has(cookie) && has(page_key)) || has(token);
  if (controller.objects.version() != version && !has_rights) abort();
  return 0;
}
