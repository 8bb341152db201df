#include "node/attach/attach_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "node/agent/testing/agent_fake.h"
#include "wire/shm/layout.h"

namespace carve::node {
namespace {

shm::AttachRequest good() {
  shm::AttachRequest r{};
  r.magic = shm::attach_magic;
  r.layout = shm::layout_version;
  r.size = sizeof r;
  r.guest = shm::Guest::preload;
  r.image = 77;
  return r;
}

TEST(AttachRequest, is_accepted_completely_or_not_at_all) {
  const shm::AttachRequest r = good();
  const auto read = parse_attach_request(&r, sizeof r);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->image, 77u);
  for (ssize_t size = -1; size < static_cast<ssize_t>(sizeof r); ++size)
    EXPECT_FALSE(parse_attach_request(&r, size)) << size;
}

TEST(AttachRequest, is_rejected_for_each_invalid_field_except_another_layout) {
  struct Row {
    bool read;
    void (*spoil)(shm::AttachRequest&);
  };
  const Row rows[] = {
      {false, [](shm::AttachRequest& r) { r.magic = 0; }},
      {false, [](shm::AttachRequest& r) { r.size = 63; }},
      {false, [](shm::AttachRequest& r) { r.size = UINT32_MAX; }},
      {false, [](shm::AttachRequest& r) { r.guest = static_cast<shm::Guest>(0); }},
      {false, [](shm::AttachRequest& r) { r.guest = static_cast<shm::Guest>(3); }},
      {true, [](shm::AttachRequest& r) { r.layout = 99; }},  // The reply has a message.
  };
  for (const Row& row : rows) {
    shm::AttachRequest r = good();
    row.spoil(r);
    EXPECT_EQ(parse_attach_request(&r, sizeof r).has_value(), row.read) << &row - rows;
  }
}

TEST(AttachRequest, is_read_up_to_the_known_size_if_a_later_library_sends_more) {
  shm::AttachRequest r = good();
  r.size = 128;
  EXPECT_TRUE(parse_attach_request(&r, 128));
  r.size = 5000;
  EXPECT_FALSE(parse_attach_request(&r, 5000));
}

// A request through a listener reaches the agent with the listener's slot. The server may be destroyed at any
// time.
TEST(AttachServer, passes_the_slot_of_the_listener_to_the_agent) {
  os::Loop loop;
  AgentFake agent;
  char name[] = "/tmp/carve-attach-XXXXXX";
  const std::string path = std::string(mkdtemp(name)) + "/s";
  auto server = std::make_unique<AttachServer>(loop, agent, *os::listen_at(path, SOCK_SEQPACKET, 0600),
                                               ContainerSlot{17});
  const auto idle = os::connect_to(path, SOCK_SEQPACKET);
  const auto peer = os::connect_to(path, SOCK_SEQPACKET);
  ASSERT_TRUE(idle && peer);
  const shm::AttachRequest request = good();
  ASSERT_TRUE(os::send_with(peer->get(), &request, sizeof request, nullptr, 0));
  loop.every(1'000'000, [&] {
    if (!agent.attached_through.empty()) loop.stop();
  });
  loop.run();
  EXPECT_EQ(agent.attached_through,
            (std::vector<std::optional<AttachPoint>>{AttachPoint(ContainerSlot{17})}));
  server.reset();
  char byte = 0;
  EXPECT_EQ(recv(idle->get(), &byte, 1, 0), 0) << "the server has closed its connections";
  std::filesystem::remove_all(name);
}

struct AttachServerTest : testing::Test {
  os::Loop loop;
  AgentFake agent;
  char folder[26] = "/tmp/carve-attach-XXXXXX";
  const std::string path = std::string(mkdtemp(folder)) + "/s";
  AttachServer server{loop, agent, *os::listen_at(path, SOCK_SEQPACKET, 0600)};
  ~AttachServerTest() override { std::filesystem::remove_all(folder); }

  os::Fd connect() const { return std::move(*os::connect_to(path, SOCK_SEQPACKET)); }
  static void send(const os::Fd& peer) {
    const shm::AttachRequest request = good();
    ASSERT_TRUE(os::send_with(peer.get(), &request, sizeof request, nullptr, 0));
  }
  // Returns the size of the reply, 0 if the server has closed the connection, or -1 if neither happened.
  static ssize_t reply(const os::Fd& peer) {
    shm::AttachReply reply{};
    return recv(peer.get(), &reply, sizeof reply, MSG_DONTWAIT);
  }
  template <class Condition>
  void run_until(Condition holds) {
    std::function<void()> look = [&] {
      if (holds()) return loop.stop();
      loop.after(1'000'000, look);
    };
    loop.after(0, look);
    loop.run();
  }
};

TEST_F(AttachServerTest, drops_silent_peers_of_a_user_and_answers_one_with_a_request) {
  std::vector<os::Fd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connect());
  const os::Fd honest = connect();
  send(honest);
  ssize_t size = -1;
  run_until([&] { return (size = reply(honest)) >= 0; });
  EXPECT_EQ(size, static_cast<ssize_t>(sizeof(shm::AttachReply)));
  size_t open = 0;
  for (const os::Fd& peer : silent) open += reply(peer) < 0;
  EXPECT_EQ(open, 7u) << "the connection with the request was the user's eighth";
  EXPECT_LT(reply(silent.front()), 1) << "the oldest connection was closed";
  EXPECT_LT(reply(silent.back()), 0);
}

TEST_F(AttachServerTest, replies_after_the_inspection_of_the_process) {
  agent.looks_first = true;
  const os::Fd peer = connect();
  send(peer);
  run_until([&] { return static_cast<bool>(agent.look_again); });
  EXPECT_LT(reply(peer), 0);
  agent.look_again();
  EXPECT_EQ(reply(peer), static_cast<ssize_t>(sizeof(shm::AttachReply)));
  agent.look_again();  // The connection is closed, and its descriptor may be reused.
  EXPECT_EQ(agent.attached_through.size(), 2u);
}

TEST_F(AttachServerTest, drops_a_peer_that_hangs_up_during_its_inspection) {
  agent.looks_first = true;
  {
    const os::Fd peer = connect();
    send(peer);
    run_until([&] { return static_cast<bool>(agent.look_again); });
  }
  agent.look_again();
  const os::Fd next = connect();
  send(next);
  ssize_t size = -1;
  run_until([&] { return (size = reply(next)) >= 0; });
  EXPECT_EQ(size, static_cast<ssize_t>(sizeof(shm::AttachReply)));
}

}  // namespace
}  // namespace carve::node
