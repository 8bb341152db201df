#include "controller/workers.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "os/clock.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;

struct Work : testing::Test {
  os::Loop loop;
  std::vector<std::string> done;

  // Runs the loop until the condition holds.
  void run_until(const std::function<bool()>& holds) {
    const auto is_asked = std::make_shared<bool>(true);  // The loop keeps its timers.
    loop.every(os::millisecond, [this, holds, is_asked] {
      if (*is_asked && holds()) loop.stop();
    });
    loop.run();
    *is_asked = false;
  }
  std::function<Workers::Act()> adds(const std::string& name) {
    return [this, name]() -> Workers::Act { return [this, name] { done.push_back(name); }; };
  }
};

TEST_F(Work, tasks_of_one_caller_run_one_after_the_other) {
  Workers workers(loop);
  std::promise<void> go;
  const auto wait = [&, gone = go.get_future().share()]() -> Workers::Act {
    gone.wait();
    return [this] { done.push_back("first"); };
  };
  EXPECT_TRUE(workers.run("a", wait, nullptr));
  EXPECT_TRUE(workers.run("a", adds("second"), nullptr));
  EXPECT_EQ(workers.running(), 1u);
  EXPECT_TRUE(workers.run("b", adds("other"), nullptr));
  run_until([&] { return done.size() == 1; });
  EXPECT_THAT(done, ElementsAre("other"));
  go.set_value();
  run_until([&] { return done.size() == 3; });
  EXPECT_THAT(done, ElementsAre("other", "first", "second"));
}

TEST_F(Work, a_caller_has_a_limit_of_waiting_tasks) {
  Workers workers(loop);
  std::promise<void> go;
  const auto wait = [gone = go.get_future().share()]() -> Workers::Act {
    gone.wait();
    return nullptr;
  };
  size_t taken = 0;
  while (taken < 1000 && workers.run("a", wait, nullptr)) ++taken;
  EXPECT_EQ(taken, Workers::max_waiting_of_key + 1);
  EXPECT_TRUE(workers.run("b", adds("other"), nullptr)) << "another caller is not affected";
  go.set_value();
  run_until([&] { return workers.running() == 0; });
}

TEST_F(Work, a_task_that_does_not_end_is_late_and_holds_its_caller_only) {
  auto go = std::make_shared<std::promise<void>>();
  {
    Workers workers(loop, 20 * os::millisecond);
    std::atomic<bool> ended{false};
    const auto wait = [&ended, gone = go->get_future().share()]() -> Workers::Act {
      gone.wait();
      ended = true;
      return nullptr;
    };
    workers.run("a", wait, [this] { done.push_back("late"); });
    workers.run("a", adds("never"), [this] { done.push_back("late too"); });
    run_until([&] { return done.size() == 2; });
    EXPECT_THAT(done, testing::UnorderedElementsAre("late", "late too"));
    EXPECT_EQ(workers.running(), 0u) << "its thread is not waited for";
    workers.run("b", adds("other"), nullptr);
    run_until([&] { return done.size() == 3; });
    EXPECT_EQ(done.back(), "other");
    go->set_value();
    run_until([&] { return ended.load(); });
    workers.run("a", adds("again"), nullptr);
    run_until([&] { return done.back() == "again"; });
  }
}

struct Answered final : http::LaterAnswer {
  std::optional<http::Response> response;
  void answer(http::Response got) override { response = std::move(got); }
};

TEST_F(Work, a_response_comes_later_unless_its_caller_is_gone) {
  Workers workers(loop);
  unsigned made = 0;
  const auto work = [&]() -> Workers::Answer {
    return [&]() -> http::Response {
      ++made;
      return {201};
    };
  };
  Answered kept, gone;
  const auto begin = [&](Answered& to) {
    const http::Response later = workers.answer_later("a", work);
    return std::get<http::LaterContent>(later.content).begin(to);
  };
  begin(gone).reset();
  const auto held = begin(kept);
  run_until([&] { return kept.response.has_value(); });
  EXPECT_EQ(kept.response->status, 201u);
  EXPECT_FALSE(gone.response);
  EXPECT_EQ(made, 1u);
}

}  // namespace
}  // namespace carve::controller
