#include "client/remote/https_server.h"

#include <gtest/gtest.h>

namespace carve::client {
namespace {

TEST(HttpsAddress, has_a_host_and_a_port) {
  EXPECT_EQ(*parse_https_address("https://gpu.example:9000"), (HttpsAddress{"gpu.example", "9000"}));
  EXPECT_EQ(*parse_https_address("https://gpu.example"), (HttpsAddress{"gpu.example", "8470"}));
  EXPECT_EQ(*parse_https_address("https://10.0.0.1:1/"), (HttpsAddress{"10.0.0.1", "1"}));
  EXPECT_EQ(*parse_https_address("https://[::1]:8470"), (HttpsAddress{"::1", "8470"}));
  EXPECT_EQ(*parse_https_address("https://[fe80::2]"), (HttpsAddress{"fe80::2", "8470"}));
}

TEST(HttpsAddress, rejects_other_texts_with_an_example) {
  for (const char* text : {"", "https://", "http://a:1", "a:8470", "https://a:", "https://a:0",
                           "https://a:65536", "https://a:99999999999", "https://a:1x", "https://a b",
                           "https://a/path", "https://user@a", "https://a\r\nX: 1", "https://[::1",
                           "https://[x]:1", "https://[::1]1", "https://:1", "https://a:1:2"}) {
    const auto address = parse_https_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_NE(address.error().message.find("use https://HOST:PORT"), std::string::npos);
  }
}

TEST(HttpsServer, rejects_a_ca_without_a_certificate) {
  for (const char* pem : {"x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}) {
    const auto remote = https_remote({.address = {"a", "1"}, .token = "", .ca_pem = pem}, {});
    ASSERT_FALSE(remote);
    EXPECT_NE(remote.error().message.find("contains no PEM certificate"), std::string::npos);
  }
}

TEST(HttpsServer, reports_an_address_at_which_nothing_listens) {
  const auto remote = https_remote({.address = {"127.0.0.1", "1"}}, {});
  ASSERT_TRUE(remote);
  const auto answer = (*remote)->ask("GET", "/v1/version", "", {});
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().detail.find("cannot connect to the controller at https://127.0.0.1:1"),
            std::string::npos);
}

}  // namespace
}  // namespace carve::client
