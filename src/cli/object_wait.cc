#include "cli/object_wait.h"

#include <chrono>
#include <thread>

#include "cli/services.h"
#include "cli/wait_goal.h"
#include "core/failure.h"
#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds read_interval{200};

enum class Progress : uint8_t { waiting, reached, failed };

Progress progress_of(Context& context, const client::Client& controller, const ObjectName& object,
                     const WaitGoal& goal) {
  const auto text = controller.text(object_path(object));
  if (!text && goal.kind == WaitGoal::Kind::deletion &&
      text.error().type == shown(FailureKind::not_found).type)
    return Progress::reached;
  if (!text) return answered(context, text, [](const auto&) {}), Progress::failed;
  const auto json = api::parse(*text);
  return json && is_reached(goal, *json) ? Progress::reached : Progress::waiting;
}

void wait_for_object(Context& context, const ObjectName& object, const WaitGoal& goal,
                     Clock::time_point deadline, const ObjectWaitOptions& options) {
  const client::Client controller = context.controller();
  for (;; std::this_thread::sleep_for(read_interval)) {
    const Progress progress = progress_of(context, controller, object, goal);
    if (progress == Progress::failed) return;
    if (progress == Progress::reached) {
      fmt::print("{} {}\n", object.text(),
                 goal.kind == WaitGoal::Kind::deletion ? "deleted" : "condition met");
      return;
    }
    if (Clock::now() >= deadline) break;
  }
  fmt::print(stderr, "carve: {0}: {1} is not reached after {2}; carve describe {0} shows its state\n",
             object.text(), harmless(options.goal), options.timeout);
  context.status = failed_status;
}

}  // namespace

void wait_for_objects(Context& context, const ObjectWaitOptions& options) {
  const auto refuse = [&](const std::string& message) { context.refuse(message); };
  if (options.goal.empty())
    return refuse(
        "add what to wait for, such as --for=condition=Ready, --for=delete or "
        "--for=jsonpath='{.status.phase}'=Running");
  const auto objects = parse_objects(options.words, options.name_space);
  if (!objects) return refuse(objects.error());
  if (objects->front().name.empty()) return refuse("no object is given; add one, such as service/NAME");
  const WaitGoal goal = parse_wait_goal(options.goal).value();
  const auto deadline = Clock::now() + std::chrono::seconds(seconds_of(options.timeout));
  for (const ObjectName& object : *objects) wait_for_object(context, object, goal, deadline, options);
}

}  // namespace carve::cli
