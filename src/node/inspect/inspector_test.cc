#include "node/inspect/inspector.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "os/clock.h"

namespace carve::node {
namespace {

os::ProcessId self() { return os::stat_of(getpid())->id; }

TEST(Inspection, shows_that_this_dynamic_process_lacks_the_library) {
  const Inspection seen = inspect(self());
  EXPECT_FALSE(seen.ended || seen.late);
  EXPECT_NE(seen.command.find("node_inspect_test"), std::string::npos) << seen.command;
  EXPECT_FALSE(seen.evidence.our_library || seen.evidence.the_driver || seen.evidence.is_mps_server);
  EXPECT_TRUE(seen.evidence.loader);
  EXPECT_TRUE(seen.maps_no_report_page);
}

TEST(Inspection, is_empty_for_an_ended_process) {
  os::ProcessId other = self();
  other.start += 1;  // As if another process had had this pid.
  EXPECT_TRUE(inspect(other).ended);
}

TEST(Inspection, shows_no_mappings_of_a_process_that_has_not_been_waited_for) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t ended;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  const Inspection seen = inspect(os::stat_of(child)->id);
  EXPECT_TRUE(seen.ended);
  EXPECT_FALSE(seen.maps_no_report_page) << "its mappings are gone";
  waitpid(child, nullptr, 0);
}

TEST(Inspection, is_outdated_if_the_process_executed_another_program) {
  int gate[2];
  ASSERT_EQ(pipe2(gate, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    char go;
    close(gate[1]);
    if (read(gate[0], &go, 1) == 1) execlp("sleep", "sleep", "600", nullptr);
    _exit(1);
  }
  const Inspection seen = inspect(os::stat_of(child)->id);
  EXPECT_TRUE(Inspector::shows_its_program(seen));
  ASSERT_EQ(write(gate[1], "x", 1), 1);
  while (os::stat_of(child)->name != "sleep") usleep(1000);
  EXPECT_FALSE(Inspector::shows_its_program(seen));
  EXPECT_TRUE(Inspector::shows_its_program(inspect(seen.process)));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(Inspector::shows_its_program(seen)) << "it is the last known command";
  close(gate[0]);
  close(gate[1]);
}

TEST(Inspection, shows_the_name_in_brackets_without_reading_memory) {
  EXPECT_EQ(bracketed_name(getpid()).substr(0, 13), "[node_inspect");
  EXPECT_EQ(bracketed_name(-1), "");
}

// Children that are threads of this process. They respond to requests except for the processes in `hang`.
struct Children {
  struct Child {
    std::thread thread;
    os::Fd ours;
  };
  std::vector<Child> all;
  unsigned starts = 0;
  bool answers = true;

  std::optional<InspectorChild> start() {
    ++starts;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return std::nullopt;
    if (answers)
      all.push_back({std::thread([end = pair[1]] { serve(end); }), os::Fd()});
    else
      all.push_back({std::thread(), os::Fd(pair[1])});
    return InspectorChild{os::Fd(pair[0]), os::Fd(), 0};
  }
  static void serve(int end) {
    run_inspector(end);
    close(end);
  }
  ~Children() {
    for (Child& c : all)
      if (c.thread.joinable()) c.thread.join();
  }
};

struct InspectorTest : testing::Test {
  os::Loop loop;
  Children children;  // Joined after the inspector has closed their sockets.
  int64_t now = 1;
  std::vector<std::pair<pid_t, uint64_t>> late;  // Late processes with their groups.
  std::unique_ptr<Inspector> inspector = std::make_unique<Inspector>(
      loop, Inspector::Hooks{.start = [this] { return children.start(); },
                             .late = [this](const Inspection& seen,
                                            uint64_t g) { late.emplace_back(seen.process.pid, g); },
                             .now_ns = [this] { return now; }});

  // Runs the loop until the condition holds.
  template <class Condition>
  void run_until(Condition holds) {
    std::function<void()> look = [&] {
      if (holds()) return loop.stop();
      loop.after(os::millisecond, look);
    };
    loop.after(0, look);
    loop.run();
  }
  // Lets the deadline of the current attempt pass.
  void let_it_be_late() {
    now += second_inspection_ns;
    inspector->tick();
  }
};

TEST_F(InspectorTest, returns_and_keeps_what_the_child_has_read) {
  std::vector<Inspection> got;
  inspector->inspect(self(), 7, [&](const Inspection& seen) { got.push_back(seen); });
  EXPECT_TRUE(got.empty()) << "the answer arrives on the loop";
  EXPECT_EQ(inspector->known(self()), nullptr);
  EXPECT_EQ(inspector->command_of(self()), bracketed_name(getpid()));
  run_until([&] { return !got.empty(); });
  EXPECT_FALSE(got.front().late);
  EXPECT_EQ(inspector->command_of(self()), inspect(self()).command);
  EXPECT_EQ(children.starts, 1u);
}

TEST_F(InspectorTest, reports_a_process_that_hangs_twice_as_late_and_pauses_its_group) {
  children.answers = false;
  std::vector<Inspection> got;
  const auto keep = [&](const Inspection& seen) { got.push_back(seen); };
  const os::ProcessId parent = os::stat_of(getppid())->id;
  inspector->inspect(self(), 7, keep);
  inspector->inspect(parent, 7, keep);
  inspector->tick();
  EXPECT_EQ(children.starts, 1u) << "the deadline has not passed";
  let_it_be_late();  // The first attempt fails. The other process of the group is next.
  EXPECT_EQ(children.starts, 2u) << "the child that hangs is replaced";
  let_it_be_late();
  EXPECT_TRUE(got.empty());
  let_it_be_late();  // The second attempt for the first process fails.
  ASSERT_EQ(got.size(), 2u) << "all processes of the group are answered";
  EXPECT_TRUE(got[0].late && got[0].evidence.unreadable && got[1].late);
  EXPECT_EQ(late, (std::vector<std::pair<pid_t, uint64_t>>{{getpid(), 7}}));

  const unsigned before = children.starts;
  inspector->inspect(self(), 7, keep);
  run_until([&] { return got.size() == 3; });
  EXPECT_TRUE(got[2].late) << "answered without an attempt during the pause";
  EXPECT_EQ(children.starts, before);

  children.answers = true;
  now += max_inspection_pause_ns;
  inspector->inspect(self(), 7, keep);
  run_until([&] { return got.size() == 4; });
  EXPECT_FALSE(got[3].late) << "it is read again after the pause";
}

TEST_F(InspectorTest, lets_processes_of_other_groups_run_between_two_attempts) {
  children.answers = false;
  std::vector<uint64_t> order;
  inspector->inspect(self(), 1, [&](const Inspection&) { order.push_back(1); });
  inspector->inspect(self(), 2, [&](const Inspection& seen) {
    EXPECT_FALSE(seen.late);
    order.push_back(2);
  });
  children.answers = true;  // For the second child; only the first attempt hangs.
  let_it_be_late();
  run_until([&] { return order.size() == 2; });
  EXPECT_EQ(order, (std::vector<uint64_t>{2, 1}));
  EXPECT_TRUE(late.empty());
}

TEST_F(InspectorTest, makes_no_finding_if_its_child_cannot_be_started) {
  auto none = std::make_unique<Inspector>(
      loop, Inspector::Hooks{.start = [] { return std::optional<InspectorChild>(); },
                             .late = [](const Inspection&, uint64_t) { FAIL(); },
                             .now_ns = [this] { return now; }});
  bool answered = false;
  none->inspect(self(), 7, [&](const Inspection& seen) { answered = seen.late; });
  for (int i = 0; i < 2; ++i) {
    now += second_inspection_ns;
    none->tick();
  }
  EXPECT_TRUE(answered);
}

TEST_F(InspectorTest, can_be_destroyed_while_requests_wait) {
  children.answers = false;
  for (int i = 0; i < 3; ++i) inspector->inspect(self(), 7, [](const Inspection&) { FAIL(); });
  inspector.reset();
}

}  // namespace
}  // namespace carve::node
