#include "cli/object_watch.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "cli/object_columns.h"
#include "cli/object_output.h"
#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

constexpr auto reconnect_interval = std::chrono::milliseconds(500);
constexpr int stopped_status = 128 + SIGINT;

// Prints changes as rows of an endless table: a column becomes wider when a cell needs it.
class ChangeTable {
 public:
  void print(const std::vector<std::string>& heading, const std::vector<std::string>& cells) {
    if (widths_.empty() && !heading.empty()) row(heading);
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

class ChangePrinter {
 public:
  ChangePrinter(const ObjectName& object, const OutputOptions& output)
      : object_(object), output_(output), format_(parse_output_format(output.format).value()) {}

  void print(const client::StreamEvent& event) {
    if (event.type == "bookmark") return;
    const bool wide = format_.kind == OutputFormat::Kind::wide;
    const NamespaceColumn column =
        wide && has_namespaces(object_.kind) ? NamespaceColumn::shown : NamespaceColumn::hidden;
    auto cells = object_cells(object_.kind, event.data, column, wide, utc_now_ns());
    if (!cells) return complain({.title = "change", .detail = "a change cannot be read: " + cells.error()});
    if (!object_.name.empty() && cells->front() != object_.name) return;
    if (event.type == "deleted") (*cells)[1] = "Deleted";
    if (format_.is_table()) return table_.print(heading(object_heading(object_.kind, column, wide)), *cells);
    print_document(event, cells->front());
  }

 private:
  std::vector<std::string> heading(std::vector<std::string> cells) const {
    if (output_.no_headers) cells.clear();
    return cells;
  }

  void print_document(const client::StreamEvent& event, const std::string& name) {
    const auto object = api::parse(event.data);
    if (!object) return complain({.title = "change", .detail = "a change cannot be read: " + object.error()});
    if (format_.kind == OutputFormat::Kind::json) {
      fmt::print("{{\"event\":\"{}\",\"object\":{}}}\n", harmless(event.type), event.data);
    } else if (format_.kind == OutputFormat::Kind::yaml) {
      fmt::print("---\n# {}\n{}", harmless(event.type), yaml_of(event.data));
    } else if (format_.kind == OutputFormat::Kind::name) {
      fmt::print("{}/{}\n", objects::text_of(object_.kind).singular, name);
    } else if (format_.kind == OutputFormat::Kind::custom_columns) {
      const auto cells = custom_cells(format_, *object);
      cells ? table_.print(heading(custom_heading(format_)), *cells)
            : complain({.title = "change", .detail = cells.error()});
    } else {
      const auto text = printed(format_.json_template, *object);
      text ? fmt::print("{}\n", *text) : complain({.title = "change", .detail = text.error()});
    }
  }

  ObjectName object_;
  OutputOptions output_;
  OutputFormat format_;
  ChangeTable table_;
};

}  // namespace

void watch_objects(Context& context, const ObjectName& object, const std::string& query,
                   const OutputOptions& output) {
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
