#include "kubernetes/api/client/curl_client.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <openssl/ssl.h>

#include <random>

#include "kubernetes/api/client/libcurl.h"
#include "kubernetes/api/client/testing/api_server_socket.h"
#include "kubernetes/api/client/testing/loopback_identity.h"
#include "kubernetes/api/watched_objects.h"
#include "tls/certificates/certificate.h"

namespace carve::kubernetes {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using FaultKind = ApiFault::Kind;

constexpr const char* nodes_path = "/api/v1/nodes";

const LoopbackIdentity& identity() {
  static const LoopbackIdentity made;
  return made;
}

json some_node(const std::string& name) { return {{"metadata", {{"name", name}}}}; }

// A server on loopback and its client, in the same loop.
struct OverLoopback {
  os::Loop loop;
  ApiServerFake server;
  ApiServerSocket socket;
  std::string token_file_text = "first";
  Nanoseconds time = 1;  // The client's time. 0 means the machine's clock.
  std::unique_ptr<CurlApiClient> client;

  explicit OverLoopback(bool has_tls = true)
      : socket(loop, server, has_tls ? tls_transport() : http::plain_transport) {
    connect({.server = fmt::format("{}://127.0.0.1:{}", has_tls ? "https" : "http", socket.port()),
             .ca_pem = has_tls ? identity().ca_pem() : ""});
  }
  static ApiServerSocket::MakeTransport tls_transport() {
    return [server = identity().server()](os::Fd fd) { return server.accept(std::move(fd)); };
  }
  void connect(const Connection& connection, size_t answer_bytes = max_answer_bytes,
               size_t line_bytes = max_watch_line_bytes) {
    client = std::make_unique<CurlApiClient>(
        loop, connection,
        CurlClientSettings{.answer_bytes = answer_bytes,
                           .line_bytes = line_bytes,
                           .sources = {.environment = nullptr,
                                       .read_file = [this](const std::string&) -> Outcome<std::string> {
                                         if (token_file_text.empty())
                                           return failure(FailureKind::not_found,
                                                          "the file t cannot be read");
                                         return token_file_text;
                                       }},
                           .now = [this] { return time > 0 ? time : os::monotonic_ns(); }});
  }
  Connection with_token_file() const {
    return {.server = fmt::format("https://127.0.0.1:{}", socket.port()),
            .ca_pem = identity().ca_pem(),
            .token_file = "t"};
  }

  void run_until(const std::function<bool()>& is_done) {
    const auto active = std::make_shared<bool>(true);
    loop.every(os::millisecond, [this, is_done, weak = std::weak_ptr<bool>(active)] {
      if (!weak.expired() && is_done()) loop.stop();
    });
    loop.run();
  }
  ApiAnswer ask(ApiRequest request) {
    std::optional<ApiAnswer> out;
    const auto call = client->send(std::move(request), [&](ApiAnswer answer) { out = std::move(answer); });
    EXPECT_FALSE(out) << "the call called back before it returned";
    run_until([&] { return out.has_value(); });
    return *out;
  }
  ApiAnswer ask(const std::string& method, const std::string& target, const json& body = nullptr,
                const char* type = json_type) {
    return ask({.method = method,
                .target = target,
                .body = body.is_null() ? "" : body.dump(),
                .content_type = type});
  }
};

// A watch and its recorded callbacks.
struct Watched {
  std::vector<std::string> lines;
  std::optional<ApiAnswer> end;
  std::unique_ptr<ApiCall> call;

  explicit Watched(OverLoopback& over) {
    call = over.client->watch({.target = std::string(nodes_path) + "?watch=true", .deadline_ns = 0},
                              {.line = [this](std::string_view line) { lines.emplace_back(line); },
                               .ended = [this](ApiAnswer answer) { end = std::move(answer); }});
  }
};

// An impostor gets neither the token nor the request, whatever its certificate is.
TEST(CurlApiClient, sends_a_request_only_to_a_server_with_the_pinned_key) {
  OverLoopback over;
  const std::string server = fmt::format("https://127.0.0.1:{}", over.socket.port());
  const auto pin = tls::key_pin(identity().ca_pem());
  ASSERT_TRUE(pin && tls::is_key_pin(*pin));
  over.connect({.server = server, .key_pin = *pin, .token = "secret"});
  EXPECT_EQ(over.ask("GET", "/version").status, 200u) << "without a CA";
  ASSERT_EQ(over.server.requests().size(), 1u);

  const LoopbackIdentity other;
  over.connect({.server = server, .key_pin = *tls::key_pin(other.ca_pem()), .token = "secret"});
  const ApiAnswer refused = over.ask("GET", "/version");
  EXPECT_EQ(refused.status, 0u);
  EXPECT_FALSE(refused.may_have_happened);
  EXPECT_THAT(refused.problem, HasSubstr("public key does not match pinned public key"));
  over.connect({.server = server, .ca_pem = identity().ca_pem(), .key_pin = *tls::key_pin(other.ca_pem())});
  EXPECT_EQ(over.ask("GET", "/version").status, 0u) << "a CA does not replace the key";
  over.connect({.server = server, .key_pin = "sha256//", .token = "secret"});
  EXPECT_EQ(over.ask("GET", "/version").status, 0u) << "not a key";
  OverLoopback plain(false);
  plain.connect({.server = fmt::format("http://127.0.0.1:{}", plain.socket.port()), .key_pin = *pin});
  EXPECT_EQ(plain.ask("GET", "/version").status, 0u) << "without TLS";
  EXPECT_EQ(over.server.requests().size(), 1u) << "no other request arrived";
  EXPECT_EQ(plain.server.requests().size(), 0u);
}

TEST(CurlApiClient, transfers_requests_and_responses) {
  for (const bool has_tls : {true, false}) {
    OverLoopback over(has_tls);
    EXPECT_EQ(over.ask("POST", nodes_path, some_node("n1")).status, 201u);
    const ApiAnswer got = over.ask("GET", "/api/v1/nodes/n1");
    EXPECT_EQ(got.status, 200u);
    EXPECT_EQ(json::parse(got.body)["metadata"]["name"], "n1");
    EXPECT_EQ(got.problem, "");
    const json patch = {{"metadata", {{"labels", {{"a", std::string(300'000, 'x')}}}}}};
    EXPECT_EQ(over.ask("PATCH", "/api/v1/nodes/n1", patch, merge_patch_type).status, 200u);
    EXPECT_EQ((*over.server.find(nodes_path, "", "n1"))["metadata"]["labels"], patch["metadata"]["labels"]);
    EXPECT_EQ(over.ask("DELETE", "/api/v1/nodes/n1").status, 200u);
    const ApiAnswer missing = over.ask("GET", "/api/v1/nodes/n1");
    EXPECT_EQ(missing.status, 404u);
    EXPECT_EQ(missing.problem, "status 404: nodes \"n1\" not found");
    EXPECT_FALSE(missing.may_have_happened);
    EXPECT_EQ(over.socket.accepted(), 1u) << "all calls use one connection";
  }
}

TEST(CurlApiClient, sends_no_request_to_a_server_whose_certificate_is_not_signed_by_the_ca) {
  OverLoopback over;
  const LoopbackIdentity other;
  over.connect({.server = fmt::format("https://127.0.0.1:{}", over.socket.port()),
                .ca_pem = other.ca_pem(),
                .token = "secret"});
  const ApiAnswer answer = over.ask("GET", nodes_path);
  EXPECT_EQ(answer.status, 0u);
  EXPECT_THAT(answer.problem, HasSubstr("certificate"));
  EXPECT_FALSE(answer.may_have_happened);
  EXPECT_TRUE(over.server.requests().empty());
}

TEST(CurlApiClient, reports_a_server_that_is_not_running) {
  OverLoopback over;
  over.connect({.server = "http://127.0.0.1:1"});
  const ApiAnswer answer = over.ask("POST", nodes_path, some_node("n"));
  EXPECT_EQ(answer.status, 0u);
  EXPECT_THAT(answer.problem, HasSubstr("127.0.0.1 port 1"));
  EXPECT_FALSE(answer.may_have_happened);
}

TEST(CurlApiClient, a_write_without_a_response_may_have_happened) {
  OverLoopback over;
  over.server.add_fault({.kind = FaultKind::lose_answer, .method = "POST"});
  const ApiAnswer lost = over.ask("POST", nodes_path, some_node("n"));
  EXPECT_EQ(lost.status, 0u);
  EXPECT_TRUE(lost.may_have_happened);
  EXPECT_NE(over.server.find(nodes_path, "", "n"), nullptr);
  EXPECT_EQ(over.ask("GET", nodes_path).status, 200u);
  // libcurl sends the write twice: a connection that carried an earlier call may have been closed in between.
  over.server.add_fault({.kind = FaultKind::lose_answer, .method = "POST"});
  const ApiAnswer twice = over.ask("POST", nodes_path, some_node("m"));
  EXPECT_NE(over.server.find(nodes_path, "", "m"), nullptr);
  EXPECT_TRUE(twice.status == 0 || twice.status == 409) << twice.status;
  EXPECT_TRUE(twice.may_have_happened);
}

TEST(CurlApiClient, abandons_a_connection_without_a_response_in_time) {
  OverLoopback over;
  EXPECT_EQ(over.ask("GET", nodes_path).status, 200u);
  over.server.add_fault({.kind = FaultKind::hang});
  const ApiAnswer late =
      over.ask({.method = "POST", .target = nodes_path, .body = "{}", .deadline_ns = 30 * os::millisecond});
  EXPECT_EQ(late.status, 0u);
  EXPECT_TRUE(late.may_have_happened);
  EXPECT_THAT(late.problem, HasSubstr("timed out"));
  EXPECT_EQ(over.ask("GET", nodes_path).status, 200u);
  EXPECT_EQ(over.socket.accepted(), 2u);
}

TEST(CurlApiClient, reports_the_servers_retry_after) {
  OverLoopback over;
  over.server.add_fault({.kind = FaultKind::status, .status = 429, .retry_after_seconds = 7});
  const ApiAnswer answer = over.ask("GET", nodes_path);
  EXPECT_EQ(answer.status, 429u);
  EXPECT_EQ(answer.retry_after_seconds, 7u);
}

TEST(CurlApiClient, a_watch_receives_complete_lines) {
  OverLoopback over;
  Watched watch(over);
  over.run_until([&] { return over.server.watches() == 1; });
  over.server.put(nodes_path, some_node("a"));
  over.server.put(nodes_path, some_node("b"));
  over.run_until([&] { return watch.lines.size() == 2; });
  EXPECT_EQ(json::parse(watch.lines[1])["object"]["metadata"]["name"], "b");
  EXPECT_FALSE(watch.end);
  EXPECT_EQ(over.ask("GET", nodes_path).status, 200u);
  EXPECT_EQ(over.socket.accepted(), 2u) << "watches use a separate connection";
  over.server.end_watches();
  over.run_until([&] { return watch.end.has_value(); });
  EXPECT_EQ(watch.end->status, 200u);
  Watched cut(over);
  over.run_until([&] { return cut.lines.size() == 2; });
  over.server.add_fault({.kind = FaultKind::cut_line});
  over.server.put(nodes_path, some_node("c"));
  over.run_until([&] { return cut.end.has_value(); });
  EXPECT_EQ(cut.lines.size(), 2u);
  EXPECT_EQ(cut.end->status, 0u);
  EXPECT_NE(cut.end->problem, "");
}

TEST(CurlApiClient, two_simultaneous_watches_both_receive_lines) {
  for (const bool has_tls : {true, false}) {
    OverLoopback over(has_tls);
    Watched first(over), second(over);
    over.run_until([&] { return over.server.watches() == 2; });
    over.server.put(nodes_path, some_node("a"));
    over.run_until([&] { return first.lines.size() == 1 && second.lines.size() == 1; });
    EXPECT_EQ(first.lines.size() + second.lines.size(), 2u) << (has_tls ? "TLS" : "plain");
  }
}

TEST(CurlApiClient, a_rejected_watch_receives_no_lines) {
  OverLoopback over;
  over.server.add_fault({.kind = FaultKind::status, .status = 410});
  Watched watch(over);
  over.run_until([&] { return watch.end.has_value(); });
  EXPECT_EQ(watch.end->status, 410u);
  EXPECT_EQ(watch.end->problem, "status 410: injected fault: 410");
  EXPECT_TRUE(watch.lines.empty());
}

TEST(CurlApiClient, rejects_responses_and_lines_above_the_limits) {
  OverLoopback over;
  over.connect(
      {.server = fmt::format("https://127.0.0.1:{}", over.socket.port()), .ca_pem = identity().ca_pem()},
      /*answer_bytes=*/1000, /*line_bytes=*/500);
  json big = some_node("big");
  big["metadata"]["labels"]["a"] = std::string(2000, 'x');
  over.server.put(nodes_path, big);
  const ApiAnswer answer = over.ask("GET", nodes_path);
  EXPECT_EQ(answer.status, 0u);
  EXPECT_EQ(answer.problem, "the response has more than 1000 bytes");
  Watched watch(over);
  over.run_until([&] { return watch.end.has_value(); });
  EXPECT_EQ(watch.end->problem, "a line has more than 500 bytes");
  EXPECT_TRUE(watch.lines.empty());
}

TEST(CurlApiClient, does_not_call_back_after_a_call_is_cancelled) {
  OverLoopback over;
  bool called = false;
  auto early = over.client->send({.target = nodes_path}, [&](const ApiAnswer&) { called = true; });
  early.reset();
  EXPECT_EQ(over.ask("GET", nodes_path).status, 200u);
  EXPECT_FALSE(called);
  for (const char* name : {"a", "b", "c"}) over.server.put(nodes_path, some_node(name));
  size_t lines = 0;
  std::unique_ptr<ApiCall> watch =
      over.client->watch({.target = "/api/v1/nodes?watch=true", .deadline_ns = 0},
                         {.line =
                              [&](std::string_view) {
                                ++lines;
                                watch.reset();  // In its own callback, before the last line.
                              },
                          .ended = [&](const ApiAnswer&) { called = true; }});
  over.run_until([&] { return lines > 0; });
  EXPECT_EQ(over.ask("GET", nodes_path).status, 200u);
  EXPECT_EQ(lines, 1u);
  EXPECT_FALSE(called);
  auto timer = over.client->after(0, [&] { called = true; });
  timer.reset();
  bool is_due = false;
  timer = over.client->after(0, [&] {
    timer.reset();
    is_due = true;
  });
  over.run_until([&] { return is_due; });
  EXPECT_FALSE(called);
  std::unique_ptr<ApiCall> left =
      over.client->send({.target = nodes_path}, [&](const ApiAnswer&) { called = true; });
  over.client.reset();
  left.reset();
  EXPECT_FALSE(called);
}

TEST(CurlApiClient, reads_the_token_file_each_minute_and_after_a_401) {
  OverLoopback over;
  over.server.required_token = "first";
  over.connect(over.with_token_file());
  EXPECT_EQ(over.ask("GET", nodes_path).status, 200u);
  over.token_file_text = "second\n";
  over.time += token_age_ns - 1;
  EXPECT_EQ(over.ask("GET", nodes_path).status, 200u) << "the first token is less than a minute old";
  over.server.required_token = "second";
  EXPECT_EQ(over.ask("GET", nodes_path).status, 200u) << "the file was read again after the 401";
  EXPECT_EQ(over.server.requests().size(), 4u);
  over.server.required_token = "third";
  const ApiAnswer refused = over.ask("GET", nodes_path);
  EXPECT_EQ(refused.status, 401u);
  EXPECT_THAT(refused.problem, testing::Not(HasSubstr("second")));
  EXPECT_EQ(over.server.requests().size(), 5u) << "the file still has the same token";
  over.token_file_text = "third";
  over.time += token_age_ns;
  EXPECT_EQ(over.ask("GET", nodes_path).status, 200u);
  EXPECT_EQ(over.server.requests().size(), 6u);
  over.token_file_text = "";
  over.time += token_age_ns;
  EXPECT_EQ(over.ask("GET", nodes_path).status, 200u) << "the last valid token is kept";
  over.connect(over.with_token_file());
  const ApiAnswer none = over.ask("GET", nodes_path);
  EXPECT_EQ(none.problem, "the file t cannot be read");
  EXPECT_FALSE(none.may_have_happened);
}

TEST(CurlApiClient, sends_no_later_watch_over_a_distrusted_connection) {
  OverLoopback over;
  Watched first(over);
  over.run_until([&] { return over.server.watches() == 1; });
  over.socket.freeze_connections();
  first.call->distrust_connection();
  first.call.reset();
  Watched second(over);
  over.server.put(nodes_path, some_node("a"));
  over.run_until([&] { return !second.lines.empty(); });
  EXPECT_TRUE(first.lines.empty());
  EXPECT_EQ(over.socket.accepted(), 2u);
}

TEST(CurlApiClient, does_not_follow_redirects) {
  OverLoopback over(/*has_tls=*/false);
  over.socket.raw_answer =
      fmt::format("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{}/x\r\nContent-Length: 0\r\n\r\n",
                  over.socket.port());
  EXPECT_EQ(over.ask("GET", nodes_path).status, 302u);
  EXPECT_EQ(over.socket.accepted(), 1u);
}

TEST(CurlApiClient, random_bytes_end_the_call) {
  OverLoopback over(/*has_tls=*/false);
  std::mt19937 dice(3);
  const std::string good = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{}\n\n\r\n0\r\n\r\n";
  size_t whole = 0;
  for (int i = 0; i < 150; ++i) {
    std::string bytes = good.substr(0, i % 5 == 0 ? dice() % good.size() + 1 : good.size());
    for (int change = 0; change < i % 4; ++change) bytes[dice() % bytes.size()] = static_cast<char>(dice());
    over.socket.raw_answer = bytes;
    if (i % 2 == 0) {
      const ApiAnswer answer = over.ask("GET", nodes_path);
      EXPECT_TRUE(answer.is_success() || !answer.problem.empty());
      if (answer.status == 200) ++whole;
    } else {
      Watched watch(over);
      over.run_until([&] { return watch.end.has_value(); });
      EXPECT_TRUE(watch.end->is_success() || !watch.end->problem.empty());
    }
  }
  EXPECT_GT(whole, 10u);
}

TEST(CurlApiClient, keeps_the_watched_objects_when_connections_are_lost) {
  OverLoopback over;
  over.time = 0;
  over.server.page_limit = 3;
  std::map<std::string, std::string> versions;
  ObjectWatch nodes(
      *over.client, {.path = nodes_path, .label_selector = "", .field_selector = ""},
      {.replaced =
           [&](const auto& all) {
             versions.clear();
             for (const auto& [uid, object] : all) versions[object.name] = object.resource_version;
           },
       .changed = [&](const ObjectMeta& object) { versions[object.name] = object.resource_version; },
       .removed = [&](const ObjectMeta& object) { versions.erase(object.name); }},
      5);
  const auto is_equal = [&] {
    std::map<std::string, std::string> stored;
    for (const json& node : over.server.all(nodes_path))
      stored[node["metadata"]["name"]] = node["metadata"]["resourceVersion"];
    return nodes.is_complete() && versions == stored;
  };
  for (int i = 0; i < 6; ++i) {
    for (int k = 0; k < 5; ++k) over.server.put(nodes_path, some_node(fmt::format("n{}", (i * 5 + k) % 8)));
    over.server.remove(nodes_path, "", fmt::format("n{}", i));
    if (i == 2) over.socket.close_connections();
    if (i == 4) over.server.add_fault({.kind = FaultKind::cut_line});
    over.run_until(is_equal);
  }
  EXPECT_EQ(nodes.lists(), 1u);
}

// libcurl has its own OpenSSL. If this program exported its static OpenSSL symbols, libcurl would run with a
// mixture of both.
TEST(CurlApiClient, has_its_own_openssl) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "SSL_CTX_new"), nullptr);
  ASSERT_TRUE(load_libcurl());
  void* const library = dlopen("libssl.so.3", RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr) << "libcurl has loaded it";
  EXPECT_NE(dlsym(library, "SSL_CTX_new"), reinterpret_cast<void*>(&SSL_CTX_new));
  dlclose(library);
}

}  // namespace
}  // namespace carve::kubernetes
