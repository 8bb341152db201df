#include "controller/api/known_hosts.h"

#include <gmock/gmock.h>

namespace carve::controller {
namespace {

http::Headers headers(const std::vector<std::pair<const char*, std::string>>& all) {
  http::Headers out;
  for (const auto& [name, value] : all) out.add(name, value);
  return out;
}

TEST(KnownHosts, include_the_loopback_names_and_those_of_the_command_line) {
  const KnownHosts hosts({"10.0.0.5", "Carve.Example"});
  for (const char* host : {"localhost", "LOCALHOST:8470", "127.0.0.1:8470", "[::1]:8470", "[::1]",
                           "10.0.0.5:1", "carve.example", "CARVE.example:443"})
    EXPECT_EQ(hosts.refusal(headers({{"Host", host}})), std::nullopt) << host;
}

TEST(KnownHosts, reject_a_forged_host_and_suggest_what_to_do) {
  const KnownHosts hosts;
  for (const char* host :
       {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8470", "", ":8470",
        "localhost:", "localhost:x", "localhost:123456", "[::1", "[::1]x", "::1", "[]", "[", "user@localhost",
        "localhost/", "localhost localhost", "127.1", "0.0.0.0"}) {
    const auto refusal = hosts.refusal(headers({{"Host", host}}));
    ASSERT_TRUE(refusal) << host;
    EXPECT_THAT(*refusal, testing::HasSubstr("--host NAME"));
  }
  EXPECT_TRUE(hosts.refusal(headers({})));
  EXPECT_TRUE(hosts.refusal(headers({{"Host", "localhost"}, {"host", "localhost"}})));
  EXPECT_LT(hosts.refusal(headers({{"Host", std::string(9000, 'a')}}))->size(), 300u);
}

TEST(KnownHosts, accept_only_the_host_itself_as_the_origin) {
  const KnownHosts hosts;
  const auto refusal = [&](const char* origin) {
    return hosts.refusal(headers({{"Host", "127.0.0.1:8470"}, {"Origin", origin}}));
  };
  EXPECT_FALSE(refusal("http://127.0.0.1:8470"));
  EXPECT_FALSE(refusal("https://127.0.0.1:8470"));
  for (const char* origin :
       {"null", "", "http://evil.example", "http://127.0.0.1", "http://127.0.0.1:3000",
        "http://localhost:8470", "file://127.0.0.1:8470", "http://127.0.0.1:8470/", "http://127.0.0.1:84700"})
    EXPECT_TRUE(refusal(origin)) << origin;
}

}  // namespace
}  // namespace carve::controller
