#include "cli/deletion.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string_view>
#include <thread>

#include "core/failure.h"
#include "objects/object.h"

namespace carve::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds ask_interval{100};
constexpr int stopped_status = 128 + SIGINT;

// The part of an object of every kind that the wait needs.
struct AnyObject {
  objects::Metadata metadata;
};

struct Deletion {
  ObjectName object;
  std::string uid;  // Distinguishes objects of the same name. Empty if unknown.
};

bool has_programs(const ObjectName& object) {
  return objects::text_of(object.kind).is_workload || object.kind == objects::Kind::job ||
         object.kind == objects::Kind::ray_cluster;
}

void end_by_signal(int) {
  constexpr std::string_view message = "carve: stopped waiting; the deletion continues\n";
  if (::write(STDERR_FILENO, message.data(), message.size()) < 0) _exit(stopped_status);
  _exit(stopped_status);
}

void print_now(const ObjectName& object, const char* what) {
  fmt::print("{} {}\n", object.text(), what);
  (void)fflush(stdout);  // Ctrl-C would end the program without a flush.
}

client::Answer<bool> is_gone(const client::Client& controller, const Deletion& deletion) {
  const auto now = controller.get<AnyObject>(object_path(deletion.object));
  if (now) return !deletion.uid.empty() && now->metadata.uid != deletion.uid;
  if (now.error().type == shown(FailureKind::not_found).type) return true;
  return tl::unexpected(now.error());
}

void wait_until_gone(Context& context, const Deletion& deletion, const DeletionWait& wait,
                     std::optional<Clock::time_point> deadline) {
  const client::Client controller = context.controller();
  for (;;) {
    const auto gone = is_gone(controller, deletion);
    if (!gone) return answered(context, gone, [](bool) {});
    if (*gone) return print_now(deletion.object, "deleted");
    if (deadline && Clock::now() >= *deadline) break;
    std::this_thread::sleep_for(ask_interval);
  }
  fmt::print(stderr,
             "carve: {0}: still being deleted after {1}; the deletion continues, and carve get {0} shows its "
             "state\n",
             deletion.object.text(), wait.timeout);
  context.status = failed_status;
}

bool is_node(Context& context, const ObjectName& object) {
  if (object.kind != objects::Kind::node) return false;
  fmt::print(stderr,
             "carve: {}: nodes are set by the controller's --node option; remove the option, or stop the "
             "node: carve node stop {}\n",
             object.text(), object.name);
  context.status = failed_status;
  return true;
}

}  // namespace

void delete_objects(Context& context, const std::vector<ObjectName>& objects, const DeletionWait& wait) {
  std::optional<Clock::time_point> deadline;
  if (!wait.timeout.empty()) deadline = Clock::now() + std::chrono::seconds(seconds_of(wait.timeout));
  const client::Client controller = context.controller();
  std::vector<Deletion> begun;
  for (const ObjectName& object : objects) {
    if (is_node(context, object)) continue;
    const auto before = controller.get<AnyObject>(object_path(object));
    answered(context, controller.remove<api::Nothing>(object_path(object)), [&](const auto&) {
      if (!has_programs(object)) return print_now(object, "deleted");
      if (!wait.waits) return print_now(object, "deletion requested");
      begun.push_back({.object = object, .uid = before ? before->metadata.uid : ""});
    });
  }
  if (begun.empty()) return;
  signal(SIGINT, end_by_signal);
  for (const Deletion& deletion : begun) wait_until_gone(context, deletion, wait, deadline);
}

}  // namespace carve::cli
