#include "controller/api/session_routes.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "controller/api/console_files.h"
#include "controller/api/testing/controller_api.h"

namespace carve::controller {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A folder with a built console, which is removed at the end.
struct ConsoleFolder {
  ConsoleFolder() {
    char pattern[] = "/tmp/carve-console-XXXXXX";
    path = mkdtemp(pattern);
    std::filesystem::create_directory(path + "/assets");
    std::ofstream(path + "/index.html") << "<title>Carve</title>";
    std::ofstream(path + "/assets/main-1234.js") << "start()";
  }
  ~ConsoleFolder() { std::filesystem::remove_all(path); }
  std::string path;
};

struct SessionRoutes : testing::Test {
  struct ConsoleViews : Prepared {
    api::ControllerVersion version() const override {
      auto out = Prepared::version();
      out.endpoint = endpoint, out.console = true;
      return out;
    }
    std::string endpoint = "http://127.0.0.1:8470";
  };

  http::Response ask(const http::Caller& caller, const std::string& method, const std::string& target,
                     const std::string& body = "", std::vector<http::Header> more = {}) {
    http::Headers headers;
    if (!caller.address().empty()) headers.add("Host", "127.0.0.1:8470");
    for (http::Header& header : more) headers.add(std::move(header.name), std::move(header.value));
    return routes.answer(request_of(method, target, body, std::move(headers)), caller);
  }
  std::string code_of(const http::Caller& caller) {
    const auto response = ask(caller, "POST", "/v1/codes");
    EXPECT_EQ(response.status, 201u) << body(response);
    const auto made = api::read<api::SignInCode>(body(response), api::Reading::strict);
    EXPECT_EQ(made->path, "/login?code=" + made->code);
    EXPECT_EQ(made->expires_ns, static_cast<uint64_t>(views.now + code_lifetime_ns));
    return made->code;
  }
  http::Response sign_in(const std::string& name, const std::string& secret) {
    return ask(browser, "POST", "/v1/session", fmt::format(R"({{"{}":"{}"}})", name, secret));
  }
  static std::string set_cookie(const http::Response& response) {
    for (const http::Header& header : response.headers)
      if (header.name == "Set-Cookie") return header.value;
    return "";
  }
  // The two headers of a session's requests.
  static std::vector<http::Header> secrets(const http::Response& signed_in) {
    const std::string cookie = set_cookie(signed_in);
    return {{"Cookie", cookie.substr(0, cookie.find(';'))},
            {"Carve-Page-Key", api::read<api::SessionView>(body(signed_in), api::Reading::strict)->page_key}};
  }

  ConsoleFolder folder;
  ConsoleViews views;
  JournalFake journal;
  JournaledRegistry objects{journal, {}, 0};
  TokenBook tokens{journal, {}};
  SessionBook sessions{journal, {}};
  ConsoleFiles files = *ConsoleFiles::open(folder.path);
  std::vector<AuditLine> audited;
  ControllerRoutes routes{{.views = views,
                           .audit = [this](const AuditLine& line) { audited.push_back(line); },
                           .objects = objects,
                           .tokens = tokens,
                           .sessions = &sessions,
                           .console = &files}};
  http::Caller browser = http::Caller::remote("127.0.0.1:50000");
};

TEST_F(SessionRoutes, a_code_signs_a_browser_in_with_the_rights_of_its_caller) {
  const auto response = sign_in("code", code_of(user(0)));
  ASSERT_EQ(response.status, 201u) << body(response);
  EXPECT_THAT(set_cookie(response),
              AllOf(HasSubstr("carve_session_8470="), HasSubstr("HttpOnly"), HasSubstr("SameSite=Strict"),
                    HasSubstr("Max-Age=43200"), Not(HasSubstr("Secure"))));
  const auto mine = ask(browser, "GET", "/v1/session", "", secrets(response));
  ASSERT_EQ(mine.status, 200u);
  const auto view = api::read<api::SessionView>(body(mine), api::Reading::strict);
  EXPECT_EQ(view->role, "operator");
  EXPECT_EQ(view->account, views.user_name(0));
  EXPECT_EQ(view->page_key, "") << "only the response to the sign-in has the key";
  EXPECT_EQ(ask(browser, "GET", "/v1/nodes", "", secrets(response)).status, 200u);
  EXPECT_EQ(ask(browser, "POST", "/v1/codes", "", secrets(response)).status, 403u) << "it would not end";
  EXPECT_EQ(ask(browser, "GET", "/v1/tokens", "", secrets(response)).status, 200u);

  const auto of_user = secrets(sign_in("code", code_of(user(1000))));
  EXPECT_THAT(body(ask(browser, "GET", "/v1/session", "", of_user)), HasSubstr(R"("role":"user")"));
  EXPECT_EQ(ask(browser, "GET", "/v1/tokens", "", of_user).status, 403u);
}

TEST_F(SessionRoutes, a_request_needs_the_cookie_and_the_page_key) {
  const auto both = secrets(sign_in("code", code_of(user(0))));
  EXPECT_EQ(ask(browser, "GET", "/v1/nodes", "", {both[0]}).status, 401u);
  EXPECT_EQ(ask(browser, "GET", "/v1/nodes", "", {both[1]}).status, 401u);
  EXPECT_EQ(ask(browser, "GET", "/v1/nodes", "", {both[0], {"Carve-Page-Key", "wrong"}}).status, 401u);
  EXPECT_EQ(
      ask(browser, "GET", "/v1/nodes", "", {{"Cookie", "a=b; " + both[0].value + "; c"}, both[1]}).status,
      200u)
      << "among other cookies";
  EXPECT_EQ(ask(browser, "GET", "/v1/nodes", "", {both[0], both[0], both[1]}).status, 401u) << "two headers";
  for (const char* cookie :
       {"", ";", "=", "carve_session_8470", "carve_session_8470=", ";;;=;", "carve_session=x"})
    EXPECT_EQ(ask(browser, "GET", "/v1/nodes", "", {{"Cookie", cookie}, both[1]}).status, 401u) << cookie;
}

TEST_F(SessionRoutes, a_page_of_another_origin_cannot_use_a_session) {
  auto foreign = secrets(sign_in("code", code_of(user(0))));
  foreign.push_back({"Origin", "http://127.0.0.1:20000"});
  EXPECT_EQ(ask(browser, "POST", "/v1/documents", service, foreign).status, 403u);
  EXPECT_EQ(ask(browser, "GET", "/v1/nodes", "", foreign).status, 403u);
  EXPECT_EQ(
      ask(browser, "POST", "/v1/session", R"({"code":"x"})", {{"Origin", "http://evil.example"}}).status,
      403u);
}

TEST_F(SessionRoutes, a_code_works_once_and_wrong_ones_are_limited) {
  const std::string code = code_of(user(0));
  EXPECT_EQ(sign_in("code", code).status, 201u);
  EXPECT_EQ(sign_in("code", code).status, 401u);
  for (unsigned i = 1; i < WrongTokens::max_attempts; ++i) EXPECT_EQ(sign_in("code", "wrong").status, 401u);
  EXPECT_EQ(sign_in("code", code_of(user(0))).status, 429u);
  views.now += WrongTokens::window_ns;
  EXPECT_EQ(sign_in("code", code_of(user(0))).status, 201u);
}

TEST_F(SessionRoutes, a_token_signs_a_browser_in_and_its_removal_ends_the_session) {
  const auto token = tokens.add({.name = "ci", .role = http::Role::viewer, .account = "research"});
  const auto both = secrets(sign_in("token", *token));
  EXPECT_THAT(body(ask(browser, "GET", "/v1/session", "", both)),
              AllOf(HasSubstr(R"("role":"viewer")"), HasSubstr(R"("account":"research")")));
  EXPECT_EQ(ask(browser, "POST", "/v1/documents", service, both).status, 403u);
  EXPECT_THAT(body(ask(user(0), "GET", "/v1/tokens")),
              AllOf(HasSubstr("session-"), HasSubstr(R"("session":true)")));
  EXPECT_EQ(ask(user(0), "DELETE", "/v1/tokens/ci").status, 200u);
  EXPECT_EQ(ask(browser, "GET", "/v1/session", "", both).status, 401u);
}

TEST_F(SessionRoutes, a_session_ends_by_signing_out_by_an_operator_and_after_twelve_hours) {
  const auto first = secrets(sign_in("code", code_of(user(0))));
  const auto out = ask(browser, "DELETE", "/v1/session", "", first);
  EXPECT_EQ(out.status, 200u);
  EXPECT_THAT(set_cookie(out), HasSubstr("Max-Age=0"));
  EXPECT_EQ(ask(browser, "GET", "/v1/nodes", "", first).status, 401u);
  EXPECT_EQ(ask(user(0), "DELETE", "/v1/session").status, 404u) << "a caller without a session";

  const auto second = secrets(sign_in("code", code_of(user(1000))));
  const std::string name = sessions.list(views.now).front().name;
  EXPECT_EQ(ask(user(1000), "DELETE", "/v1/tokens/" + name).status, 403u);
  EXPECT_EQ(ask(user(0), "DELETE", "/v1/tokens/" + name).status, 200u);
  EXPECT_EQ(ask(browser, "GET", "/v1/nodes", "", second).status, 401u);

  const auto third = secrets(sign_in("code", code_of(user(0))));
  views.now += session_lifetime_ns;
  EXPECT_EQ(ask(browser, "GET", "/v1/nodes", "", third).status, 401u);
}

TEST_F(SessionRoutes, wrong_documents_are_rejected) {
  for (const char* text : {"", "{", "[]", R"({"code":1})", R"({"secret":"x"})"})
    EXPECT_EQ(ask(browser, "POST", "/v1/session", text).status, 400u) << text;
  EXPECT_EQ(ask(browser, "POST", "/v1/session", "{}").status, 400u);
  EXPECT_EQ(ask(browser, "POST", "/v1/session", R"({"code":"a","token":"b"})").status, 400u);
  EXPECT_EQ(ask(browser, "POST", "/v1/codes").status, 401u);
  const auto reserved = ask(user(0), "POST", "/v1/tokens", R"({"name":"session-1"})");
  EXPECT_THAT(body(reserved), HasSubstr("'session-1' is not a valid token name"));
}

TEST_F(SessionRoutes, a_cookie_over_tls_is_secure_and_audit_lines_have_no_secret) {
  views.endpoint = "https://gpu.example:8470";
  const std::string code = code_of(user(0));
  EXPECT_THAT(set_cookie(sign_in("code", code)), HasSubstr("; Secure"));
  ASSERT_FALSE(audited.empty());
  for (const AuditLine& line : audited) EXPECT_THAT(line.change, Not(HasSubstr(code)));
}

TEST_F(SessionRoutes, an_anonymous_caller_may_read_the_files_of_the_console_but_no_path_of_the_api) {
  for (const char* path : {"/", "/login", "/services/default/demo"}) {
    const auto page = ask(browser, "GET", path);
    EXPECT_EQ(page.status, 200u) << path;
    EXPECT_EQ(page.type, "text/html; charset=utf-8");
    const bool is_protected = std::ranges::any_of(page.headers, [](const http::Header& header) {
      return header.name == "Content-Security-Policy" &&
             header.value.find("default-src 'self'") != std::string::npos;
    });
    EXPECT_TRUE(is_protected) << path;
  }
  EXPECT_EQ(ask(browser, "GET", "/assets/main-1234.js").type, "text/javascript; charset=utf-8");
  EXPECT_EQ(ask(browser, "GET", "/assets/other.js").status, 404u);
  EXPECT_EQ(ask(browser, "GET", "/../secret.txt").status, 404u);
  EXPECT_EQ(ask(browser, "POST", "/login").status, 405u);
  for (const char* path : {"/v1/nodes", "/v1/nothing", "/v1", "/openapi.json", "/metrics"})
    EXPECT_EQ(ask(browser, "GET", path).status, 401u) << path;
  EXPECT_EQ(ask(user(0), "GET", "/").status, 404u) << "the unix socket serves only the API";
}

TEST_F(SessionRoutes, a_folder_without_a_console_is_rejected) {
  std::filesystem::remove(folder.path + "/index.html");
  EXPECT_THAT(ConsoleFiles::open(folder.path).error().message, HasSubstr("contains no built console"));
  EXPECT_THAT(ConsoleFiles::open(folder.path + "/none").error().message,
              HasSubstr("cannot serve the folder"));
}

}  // namespace
}  // namespace carve::controller
