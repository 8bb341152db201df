#include "controller/runtime/endpoint_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace carve::controller {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

DesiredEndpoint web() {
  return {
      .service = "web",
      .port = 8001,
      .servers = {{.replica = "web-1-0", .port = 21001}, {.replica = "web-1-1", .port = 21002, .weight = 3}}};
}

std::string message_of(const std::vector<DesiredEndpoint>& endpoints, const ProxySettings& settings = {}) {
  const auto checked = check(endpoints, settings);
  return checked ? "" : checked.error().message;
}

TEST(EndpointConfig, has_a_frontend_and_a_backend_with_the_ready_replicas_per_endpoint) {
  EXPECT_THAT(config_text({web()}), HasSubstr(R"(
frontend default:web:8001
    bind 127.0.0.1:8001
    http-after-response set-header Connection close if { stopping } !{ status 101 }
    http-request disable-l7-retry unless { method GET HEAD OPTIONS }
    http-request set-var(txn.began) date(0,ms)
    http-request track-sc0 str(default:web) table carve-latency
    http-response set-var(txn.ms) date(0,ms),sub(txn.began)
    http-response sc-inc-gpc(0,0) if { var(txn.ms) -m int le 5 }
    http-response sc-inc-gpc(1,0) if { var(txn.ms) -m int 6:10 }
    http-response sc-inc-gpc(2,0) if { var(txn.ms) -m int 11:25 }
    http-response sc-inc-gpc(3,0) if { var(txn.ms) -m int 26:50 }
    http-response sc-inc-gpc(4,0) if { var(txn.ms) -m int 51:100 }
    http-response sc-inc-gpc(5,0) if { var(txn.ms) -m int 101:250 }
    http-response sc-inc-gpc(6,0) if { var(txn.ms) -m int 251:500 }
    http-response sc-inc-gpc(7,0) if { var(txn.ms) -m int 501:1000 }
    http-response sc-inc-gpc(8,0) if { var(txn.ms) -m int 1001:2500 }
    http-response sc-inc-gpc(9,0) if { var(txn.ms) -m int 2501:5000 }
    http-response sc-inc-gpc(10,0) if { var(txn.ms) -m int 5001:10000 }
    http-response sc-inc-gpc(11,0) if { var(txn.ms) -m int 10001:30000 }
    http-response sc-inc-gpc(12,0) if { var(txn.ms) -m int 30001:60000 }
    http-response sc-inc-gpc(13,0) if { var(txn.ms) -m int 60001:300000 }
    http-response sc-inc-gpc(14,0) if { var(txn.ms) -m int ge 300001 }
    http-response sc-set-gpt(0,0) sc_get_gpt(0,0),add(txn.ms)
    default_backend default:web

backend default:web
    server web-1-0.21001 127.0.0.1:21001 weight 1
    server web-1-1.21002 127.0.0.1:21002 weight 3
)"));
}

TEST(EndpointConfig, depends_on_the_desired_endpoints_but_not_on_their_order) {
  DesiredEndpoint other{.name_space = "team", .service = "api", .port = 8002};
  DesiredEndpoint reversed = web();
  std::ranges::reverse(reversed.servers);
  EXPECT_EQ(config_text({web(), other}), config_text({other, reversed}));
  EXPECT_EQ(frame_of({web(), other}), frame_of({other, reversed}));
}

TEST(EndpointConfig, has_a_frame_that_changes_with_endpoints_and_settings_but_not_with_servers) {
  const std::string frame = frame_of({web()});
  EXPECT_THAT(config_text({web()}), HasSubstr("description " + frame + "\n"));
  DesiredEndpoint changed = web();
  changed.servers.pop_back();
  EXPECT_EQ(frame_of({changed}), frame);
  EXPECT_NE(config_text({changed}), config_text({web()}));
  changed.port = 8002;
  EXPECT_NE(frame_of({changed}), frame);
  EXPECT_NE(frame_of({}), frame);
  EXPECT_NE(frame_of({web()}, {.metrics_port = 9101}), frame);
  EXPECT_NE(frame_of({web()}, {.threads = 3}), frame);
}

TEST(EndpointConfig, serves_the_exporter_on_a_socket_and_on_a_port_if_requested) {
  EXPECT_THAT(config_text({}), Not(HasSubstr("127.0.0.1")));
  EXPECT_THAT(config_text({}), HasSubstr("bind unix@metrics.sock mode 600"));
  EXPECT_THAT(config_text({}, {.metrics_port = 9101}), HasSubstr("bind 127.0.0.1:9101\n"));
}

TEST(EndpointConfig, never_lets_a_users_text_end_a_word_or_a_line) {
  const std::string hostile[] = {"",        "a b",      "a\nbackend b",
                                 "a\r",     "a#",       "a\"",
                                 "a'",      "a\\",      "$HOME",
                                 "a;b",     "a:b",      "a.b",
                                 "-a",      "a-",       "A",
                                 "a_b",     "\xc3\xa9", std::string("a\0b", 3),
                                 "${PATH}", "a/b",      "..",
                                 "a{b}",    "%[src]",   std::string(64, 'a')};
  for (const std::string& name : hostile) {
    DesiredEndpoint endpoint = web();
    endpoint.service = name;
    EXPECT_THAT(message_of({endpoint}), HasSubstr("is not a valid name")) << name;
    EXPECT_THAT(message_of({endpoint}), Not(ContainsRegex("[\n\r]")));
    endpoint = web();
    endpoint.name_space = name;
    EXPECT_THAT(message_of({endpoint}), HasSubstr("is not a valid name")) << name;
    endpoint = web();
    endpoint.servers[0].replica = name;
    EXPECT_THAT(message_of({endpoint}), HasSubstr("is not a valid name")) << name;
  }
}

TEST(EndpointConfig, reports_each_violated_rule) {
  EXPECT_EQ(message_of({web()}), "");
  struct Row {
    void (*change)(std::vector<DesiredEndpoint>&);
    const char* message;
  };
  const Row rows[] = {
      {[](auto& all) { all[0].port = 0; }, "endpoint default:web has no port"},
      {[](auto& all) { all.push_back(web()); }, "endpoint default:web is desired twice"},
      {[](auto& all) { all.push_back({.service = "b", .port = 8001}); },
       "endpoint default:b has port 8001, which another endpoint has"},
      {[](auto& all) { all.push_back({.service = "b", .port = 9101}); },
       "endpoint default:b has port 9101, which another endpoint has"},
      {[](auto& all) { all[0].servers[0].port = 0; }, "replica web-1-0 of endpoint default:web has no port"},
      {[](auto& all) { all.push_back({.service = "b", .port = 21001}); },
       "replica web-1-0 of endpoint default:web has port 21001, which is the port of an endpoint"},
      {[](auto& all) { all[0].servers[1].replica = "web-1-0"; },
       "endpoint default:web lists replica web-1-0 twice"},
      {[](auto& all) { all[0].servers[1].weight = 257; },
       "replica web-1-1 of endpoint default:web has weight 257; it must be 1 to 256"},
      {[](auto& all) { all[0].servers[1].weight = 0; },
       "replica web-1-1 of endpoint default:web has weight 0; it must be 1 to 256"},
      {[](auto& all) { all[0].servers.resize(max_endpoint_servers + 1); },
       "endpoint default:web has 129 servers; at most 128 are allowed"},
      {[](auto& all) { all.resize(max_endpoints + 1); },
       "257 endpoints are desired; at most 256 are allowed"},
  };
  for (const Row& row : rows) {
    std::vector<DesiredEndpoint> endpoints{web()};
    row.change(endpoints);
    EXPECT_EQ(message_of(endpoints, {.metrics_port = 9101}), row.message);
  }
  EXPECT_EQ(message_of({}, {.threads = 65}), "HAProxy cannot have 65 threads; use 1 to 64");
}

TEST(EndpointConfig, parses_its_own_names_and_no_others) {
  const auto frontend = parse_proxy_name("team:web:8001");
  ASSERT_TRUE(frontend);
  EXPECT_EQ(frontend->name_space, "team");
  EXPECT_EQ(frontend->service, "web");
  EXPECT_EQ(frontend->port, 8001);
  ASSERT_TRUE(parse_proxy_name("team:web"));
  EXPECT_EQ(parse_proxy_name("team:web")->port, 0);
  for (const char* name : {"", "web", ":", "team:", ":web", "team:web:", "team:web:0", "team:web:65536",
                           "team:web:80:1", "team:web:+8", "team:web:08", "carve-metrics", "<HTTPCLIENT>"})
    EXPECT_FALSE(parse_proxy_name(name)) << name;
  const auto server = parse_server_name("web-1-0.21001");
  ASSERT_TRUE(server);
  EXPECT_EQ(server->replica, "web-1-0");
  EXPECT_EQ(server->port, 21001);
  for (const char* name : {"", ".", "a", "a.", ".1", "a.0", "a.70000", "a.1.2", "a. 1", "A.1"})
    EXPECT_FALSE(parse_server_name(name)) << name;
}

}  // namespace
}  // namespace carve::controller
