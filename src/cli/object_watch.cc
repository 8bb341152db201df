#include "cli/object_watch.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "cli/node_pools.h"
#include "cli/object_output.h"

namespace carve::cli {
namespace {

constexpr auto reconnect_interval = std::chrono::milliseconds(500);
constexpr int stopped_status = 128 + SIGINT;

// Prints changes as rows of an endless table: a column becomes wider when a cell needs it.
class ChangeTable {
 public:
  void print(const std::vector<std::string>& heading, const std::vector<std::string>& cells) {
    if (widths_.empty()) row(heading);
    row(cells);
  }

 private:
  void row(const std::vector<std::string>& cells) {
    widths_.resize(cells.size(), 10);
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      widths_[i] = std::max(widths_[i], columns(cells[i]));
      line += i + 1 == cells.size() ? cells[i] : padded(cells[i], widths_[i] + 2);
    }
    fmt::print("{}\n", line);
  }

  std::vector<size_t> widths_;
};

const std::vector<std::string> workload_heading = {"NAME",     "STATUS",   "READY",
                                                   "REVISION", "RESTARTS", "ENDPOINT"};

Result<std::vector<std::string>, std::string> workload_cells(const std::string& json) {
  const auto s = api::read<objects::Service>(json, api::Reading::lenient);
  if (!s) return tl::unexpected(s.error());
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : harmless(text); };
  return std::vector<std::string>{harmless(s->metadata.name),
                                  or_dash(text(s->status.phase)),
                                  fmt::format("{}/{}", s->status.ready_replicas, wanted_replicas(*s)),
                                  fmt::format("{}", s->status.revision),
                                  fmt::format("{}", s->status.restarts),
                                  or_dash(s->status.endpoint)};
}

class ChangePrinter {
 public:
  ChangePrinter(const ObjectName& object, std::string output) : object_(object), output_(std::move(output)) {}

  void print(const client::StreamEvent& event) {
    if (event.type == "bookmark") return;
    const bool is_workload = objects::text_of(object_.kind).is_workload;
    auto cells = is_workload ? workload_cells(event.data) : change_cells(object_.kind, event.data);
    if (!cells) return complain({.title = "change", .detail = "a change cannot be read: " + cells.error()});
    const std::string name = cells->front();
    if (!object_.name.empty() && name != object_.name) return;
    if (event.type == "deleted") (*cells)[1] = "Deleted";
    if (output_ == "json")
      fmt::print("{{\"event\":\"{}\",\"object\":{}}}\n", harmless(event.type), event.data);
    else if (output_ == "yaml")
      fmt::print("---\n# {}\n{}", harmless(event.type), yaml_of(event.data));
    else if (output_ == "name")
      fmt::print("{}/{}\n", objects::text_of(object_.kind).singular, name);
    else
      table_.print(is_workload ? workload_heading : change_heading(object_.kind), *cells);
  }

 private:
  ObjectName object_;
  std::string output_;
  ChangeTable table_;
};

}  // namespace

void watch_objects(Context& context, const ObjectName& object, const std::string& query,
                   const std::string& output) {
  // Every change is flushed, so no output is lost here.
  signal(SIGINT, [](int) { _exit(stopped_status); });
  const client::Client controller = context.controller();
  const std::string target =
      fmt::format("/v1/watch?kinds={}&{}", objects::text_of(object.kind).plural, query);
  ChangePrinter printer(object, output);
  std::string last_id;
  bool opened_once = false, loss_told = false;
  while (true) {
    const client::WatchEnd ended = controller.watch(target, last_id, [&](const auto& event) {
      printer.print(event);
      if (!event.id.empty()) last_id = event.id;
    });
    opened_once = opened_once || ended.opened;
    if (ended.opened) loss_told = false;
    if (ended.problem.type == "carve:gone" && !last_id.empty()) {
      complain({.title = "gone",
                .detail = "some changes were lost, because the controller keeps only the newest ones; "
                          "printing all objects again"});
      last_id.clear();
      continue;
    }
    const bool lost = ended.problem.type == "carve:no-agent" || ended.problem.type == "carve:no-response";
    if (!lost || !opened_once) {
      complain(ended.problem);
      context.status = context.problem_status;
      return;
    }
    if (!loss_told)
      complain({.title = "lost", .detail = ended.problem.detail + "; waiting for the controller"});
    loss_told = true;
    std::this_thread::sleep_for(reconnect_interval);
  }
}

}  // namespace carve::cli
