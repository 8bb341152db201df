#include "guest/process/attach_request.h"

#include <gtest/gtest.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace carve::guest {
namespace {

shm::AttachReply granted() {
  shm::AttachReply r = {};
  r.magic = shm::attach_magic;
  r.layout = shm::layout_version;
  r.size = sizeof r;
  r.status = shm::AttachStatus::granted;
  r.slot = 7;
  r.control_size = sizeof(shm::Control);
  r.report_size = sizeof(shm::Report);
  return r;
}

TEST(Reply, attaches_if_it_follows_all_rules) {
  EXPECT_EQ(judge(granted(), sizeof(shm::AttachReply), 3), AttachResult::attached);
}

TEST(Reply, is_refused_if_it_breaks_one_rule) {
  const struct {
    const char* rule;
    void (*breaks)(shm::AttachReply&);
    size_t size = sizeof(shm::AttachReply), descriptors = 3;
  } table[] = {
      {"magic", [](auto& r) { r.magic ^= 1; }},
      {"layout", [](auto& r) { r.layout += 1; }},
      {"the size in the reply", [](auto& r) { r.size -= 8; }},
      {"status", [](auto& r) { r.status = static_cast<shm::AttachStatus>(99); }},
      {"slot", [](auto& r) { r.slot = shm::max_processes; }},
      {"control size", [](auto& r) { r.control_size += 1; }},
      {"the report size", [](auto& r) { r.report_size = 0; }},
      {"report size", [](auto& r) { r.report_size += 4096; }},
      {"a message without a terminator", [](auto& r) { memset(r.message, 'x', sizeof r.message); }},
      {"length", [](auto&) {}, sizeof(shm::AttachReply) - 1},
      {"two descriptors", [](auto&) {}, sizeof(shm::AttachReply), 2},
      {"no descriptors", [](auto&) {}, sizeof(shm::AttachReply), 0},
      {"descriptors without a slice", [](auto& r) { r.status = shm::AttachStatus::not_in_slice; }},
      {"wrong layout", [](auto& r) { r.status = shm::AttachStatus::wrong_layout; }, sizeof(shm::AttachReply),
       0},
      {"no slot", [](auto& r) { r.status = shm::AttachStatus::no_slot; }, sizeof(shm::AttachReply), 0},
  };
  for (const auto& row : table) {
    shm::AttachReply r = granted();
    row.breaks(r);
    EXPECT_EQ(judge(r, row.size, row.descriptors), AttachResult::refused) << row.rule;
  }
}

TEST(Reply, of_a_busy_agent_leads_to_another_request) {
  shm::AttachReply r = granted();
  r.status = shm::AttachStatus::try_again;
  EXPECT_EQ(judge(r, sizeof r, 0), AttachResult::unreachable);
}

TEST(Attach, is_unreachable_without_an_agent_after_the_patience) {
  SharedMemory pages = {};
  EXPECT_EQ(attach("/tmp/carve-no-listener", shm::Guest::preload, 120'000'000, &pages),
            AttachResult::unreachable);
}

TEST(Attach, fails_immediately_if_the_path_is_too_long_for_a_socket) {
  SharedMemory pages = {};
  const std::string path(200, 'x');
  EXPECT_EQ(attach(path.c_str(), shm::Guest::preload, INT64_MAX / 2, &pages), AttachResult::unreachable);
}

TEST(Attach, times_out_if_the_agent_never_replies) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  SharedMemory pages = {};
  EXPECT_EQ(converse(ends[0], shm::Guest::preload, 0, &pages), AttachResult::unreachable);
  shm::AttachRequest request = {};
  EXPECT_EQ(recv(ends[1], &request, sizeof request, 0), static_cast<ssize_t>(sizeof request));
  EXPECT_EQ(request.magic, shm::attach_magic);
  EXPECT_EQ(request.layout, shm::layout_version);
  EXPECT_EQ(request.size, sizeof request);
  EXPECT_NE(request.image, 0u);
  close(ends[0]);
  close(ends[1]);
}

TEST(AttachRequest, treats_an_agent_outside_the_user_namespace_as_having_no_uid_there) {
  const char* const first = "         0          0 4294967295\n";
  const char* const rootless = "         0       1000          1\n         1     100000      65536\n";
  const char* const one_user = "         0       1000          1\n";
  EXPECT_FALSE(is_outside(65534, 5, first, "65534\n"));
  EXPECT_FALSE(is_outside(65534, 0, first, "65534\n"));
  EXPECT_FALSE(is_outside(65534, 5, rootless, "65534\n")) << "the uid may be a user of the container";
  EXPECT_TRUE(is_outside(65534, 0, rootless, "65534\n"));
  EXPECT_TRUE(is_outside(65534, 5, one_user, "65534\n"));
  EXPECT_FALSE(is_outside(65533, 0, one_user, "65534\n"));
  for (const char* broken : {"", "x", "0 0", "0 1000 x"})
    EXPECT_FALSE(is_outside(65534, 0, broken, "65534")) << broken;
  EXPECT_FALSE(is_outside(65534, 0, one_user, ""));
}

}  // namespace
}  // namespace carve::guest
