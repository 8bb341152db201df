#include "controller/later_answer.h"

#include <gtest/gtest.h>

#include <future>

#include "os/clock.h"

namespace carve::controller {
namespace {

struct Answered final : http::LaterAnswer {
  std::function<void()> act;
  std::optional<http::Response> response;
  void answer(http::Response got) override {
    response = std::move(got);
    act();
  }
};

TEST(AnswerLater, is_sent_from_a_thread_unless_its_caller_is_gone) {
  os::Loop loop;
  os::Workers workers(loop);
  unsigned made = 0;
  const auto work = [&]() -> Answer {
    return [&]() -> http::Response {
      ++made;
      return {201};
    };
  };
  Answered kept, gone;
  kept.act = [&] { loop.stop(); };
  const auto begin = [&](Answered& to) {
    const http::Response later = answer_later(workers, "a", work);
    return std::get<http::LaterContent>(later.content).begin(to);
  };
  begin(gone).reset();
  const auto held = begin(kept);
  loop.run();
  ASSERT_TRUE(kept.response);
  EXPECT_EQ(kept.response->status, 201u);
  EXPECT_FALSE(gone.response);
  EXPECT_EQ(made, 1u);
}

TEST(AnswerLater, rejects_the_request_if_the_work_takes_too_long) {
  os::Loop loop;
  std::promise<void> go;
  os::Workers workers(loop, 10 * os::millisecond);
  Answered late;
  late.act = [&] { loop.stop(); };
  const http::Response later = answer_later(workers, "a", [gone = go.get_future().share()]() -> Answer {
    gone.wait();
    return nullptr;
  });
  const auto held = std::get<http::LaterContent>(later.content).begin(late);
  loop.run();
  ASSERT_TRUE(late.response);
  EXPECT_EQ(late.response->status, 503u);
  go.set_value();
}

}  // namespace
}  // namespace carve::controller
