#include "controller/runtime/haproxy_config.h"

#include <gmock/gmock.h>

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const ServiceEndpoint two{
    .uid = "u", .name = "default/a", .port = 18000, .servers = {{"a-1-0", 20000}, {"a-1-1", 20001}}};

TEST(HaProxyConfig, has_the_present_servers_so_that_a_reload_keeps_them) {
  const std::string text = haproxy_config({two}, "/run/x/admin.sock");
  EXPECT_THAT(text, HasSubstr("stats socket /run/x/admin.sock mode 600 level admin"));
  EXPECT_THAT(text, HasSubstr("frontend endpoint-18000\n    bind 127.0.0.1:18000\n    http-after-response "
                              "set-header Connection close if { stopping }\n"
                              "    default_backend endpoint-18000\n"));
  EXPECT_THAT(text, HasSubstr("    server a-1-0 127.0.0.1:20000\n    server a-1-1 127.0.0.1:20001\n"));
}

TEST(HaProxyConfig, servers_are_read_by_the_names_of_the_columns) {
  const auto seen = parse_servers(
      "# pxname,svname,qcur,qmax,scur,status,x\n"
      "endpoint-18000,FRONTEND,,,7,OPEN,\n"
      "endpoint-18000,a-1-0,1,0,2,no check,\n"
      "endpoint-18000,a-1-1,0,0,0,DRAIN,\n"
      "endpoint-18000,a-1-2,0,0,0,MAINT,\n"
      "endpoint-18000,BACKEND,0,0,0,UP,\n"
      "endpoint-18000\n\n");
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].name, "a-1-0");
  EXPECT_EQ(seen[0].sessions, 3u);
  EXPECT_TRUE(seen[0].is_ready);
  EXPECT_FALSE(seen[1].is_ready);
  EXPECT_FALSE(seen[2].is_ready);
  EXPECT_THAT(parse_servers("garbage\n# \n,,,\n"), IsEmpty());
}

TEST(HaProxyConfig, the_commands_lead_from_the_seen_to_the_wanted_servers) {
  const auto server = [](const char* name, bool ready, uint32_t sessions) {
    return SeenServer{.backend = "endpoint-18000", .name = name, .sessions = sessions, .is_ready = ready};
  };
  EXPECT_THAT(server_commands({two}, {server("a-1-0", true, 5), server("a-1-1", true, 0)}), IsEmpty());
  EXPECT_THAT(server_commands({two}, {server("a-1-0", true, 0)}),
              ElementsAre("add server endpoint-18000/a-1-1 127.0.0.1:20001",
                          "set server endpoint-18000/a-1-1 state ready"));
  EXPECT_THAT(server_commands({two}, {server("a-1-0", true, 0), server("a-1-1", false, 0)}),
              ElementsAre("set server endpoint-18000/a-1-1 state ready"))
      << "one that is wanted again is not deleted";
  const ServiceEndpoint none{.uid = "u", .name = "default/a", .port = 18000, .servers = {}};
  EXPECT_THAT(server_commands({none}, {server("a-1-0", true, 3)}),
              ElementsAre("set server endpoint-18000/a-1-0 state drain"));
  const ServiceEndpoint other{.uid = "u", .name = "default/a", .port = 18000, .servers = {{"a-1-1", 20001}}};
  EXPECT_THAT(server_commands({other}, {server("a-1-0", true, 0)}),
              ElementsAre("add server endpoint-18000/a-1-1 127.0.0.1:20001",
                          "set server endpoint-18000/a-1-1 state ready",
                          "set server endpoint-18000/a-1-0 state drain"))
      << "the new one comes before the old one goes";
  EXPECT_THAT(server_commands({none}, {server("a-1-0", false, 3)}), IsEmpty()) << "its connections end first";
  EXPECT_THAT(server_commands({none}, {server("a-1-0", false, 0)}),
              ElementsAre("set server endpoint-18000/a-1-0 state maint", "del server endpoint-18000/a-1-0"));
}

}  // namespace
}  // namespace carve::controller
