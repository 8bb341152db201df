#include "os/server_identity.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace carve::os {
namespace {

constexpr const char* first_namespace = "         0          0 4294967295\n";
constexpr const char* rootless = "         0       1000          1\n         1     100000      65536\n";
constexpr const char* one_user = "         0       1000          1\n";

TEST(ServerIdentity, trusts_root_the_own_user_and_configured_users) {
  const ClientUids client{
      .effective = 1000, .uid_map = first_namespace, .service = 70, .trusted = "1002,1003"};
  for (const uint32_t uid : {0u, 1000u, 70u, 1002u, 1003u})
    EXPECT_TRUE(is_trusted({.uid = uid, .pid = 5}, client)) << uid;
  for (const uint32_t uid : {1u, 1001u, 100u, 2u, 65534u, UINT32_MAX})
    EXPECT_FALSE(is_trusted({.uid = uid, .pid = 5}, client)) << uid;
}

TEST(ServerIdentity, parses_a_list_of_trusted_uids_strictly) {
  for (const char* list :
       {"", ",", "1002x", " 1002", "-1", "+1002", "1002 1003", "0x3ea", "99999999999", "1002.", ",,"})
    EXPECT_FALSE(is_trusted({.uid = 1002, .pid = 5},
                            {.effective = 1000, .uid_map = {}, .service = {}, .trusted = list}))
        << list;
  for (const char* list : {"1002", "1,1002", "1002,x", ",1002,"})
    EXPECT_TRUE(is_trusted({.uid = 1002, .pid = 5},
                           {.effective = 1000, .uid_map = {}, .service = {}, .trusted = list}))
        << list;
}

// In a user namespace, the host's agent has no uid. It is shown with the overflow uid, which a user of a
// container may have too.
TEST(ServerIdentity, trusts_a_server_without_a_uid_only_if_no_process_of_the_namespace_can_imitate_it) {
  const struct {
    const char* uid_map;
    int pid;
    bool trusted;
  } rows[] = {{first_namespace, 5, false}, {first_namespace, 0, false}, {"", 0, false},
              {rootless, 5, false},        {rootless, 0, true},         {one_user, 5, true},
              {one_user, 0, true}};
  for (const auto& row : rows) {
    const ClientUids client{.effective = 0, .uid_map = row.uid_map, .service = {}, .trusted = {}};
    EXPECT_EQ(is_trusted({.uid = 65534, .pid = row.pid}, client), row.trusted) << row.uid_map << row.pid;
    EXPECT_FALSE(is_trusted({.uid = 65533, .pid = row.pid}, client));
  }
}

TEST(ServerIdentity, trusts_a_socket_that_is_served_by_this_process) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_FALSE(untrusted_server(ends[0]));
  close(ends[0]);
  close(ends[1]);
  EXPECT_TRUE(untrusted_server(-1)) << "not a socket";
}

TEST(ServerIdentity, message_names_the_variable_that_trusts_the_server) {
  EXPECT_EQ(distrust_message(4242),
            "uid 4242, which is neither root nor this user; set CARVE_TRUSTED_UIDS=4242 to trust it");
}

}  // namespace
}  // namespace carve::os
