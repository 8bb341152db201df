// `carve ps`: prints the slices, one per line.
#include "base/bytes.h"
#include "base/share.h"
#include "cli/messages.h"
#include "cli/object_output.h"
#include "cli/verbs.h"
#include "wire/api/slice.h"

namespace carve::cli {
namespace {

// Returns the object that the slice belongs to: "service/demo"; "-" if it belongs to none.
std::string workload_column(const api::Slice& slice) {
  if (slice.holder && slice.holder->pod)
    return harmless(fmt::format("pod/{}/{}", slice.holder->pod->namespace_, slice.holder->pod->name));
  const auto kind = slice.labels.find("carve.dev/kind"), name = slice.labels.find("carve.dev/name");
  if (kind == slice.labels.end() || name == slice.labels.end()) return "-";
  return harmless(kind->second + "/" + name->second);
}

// Returns the memory as requested in units: "16 x 128 MiB"; "-" if it was requested in bytes.
std::string units_column(const api::Slice& slice) {
  if (slice.memory_units.count == 0) return "-";
  return fmt::format("{} x {}", slice.memory_units.count, text(size_of(slice.memory_units.unit)).c_str());
}

void print(const api::SliceList& list, bool wide) {
  std::vector<std::string> heading = {"NAME",    "STATE",     "DEVICE", "MEMORY",
                                      "COMPUTE", "ISOLATION", "AGE",    "COMMAND"};
  if (wide) heading.insert(heading.end() - 1, {"POLICY", "UNITS", "ACCOUNT", "WORKLOAD"});
  std::vector<std::vector<std::string>> rows;
  for (const api::Slice& slice : list.slices) {
    std::vector<std::string> devices;
    uint64_t charged = 0, quota = 0;
    for (const api::SlicePart& part : slice.parts) {
      devices.push_back(std::to_string(part.index));
      charged += part.charged_bytes;
      quota += part.quota_bytes;
    }
    const uint64_t until = slice.ended_ns != 0 ? slice.ended_ns : utc_now_ns();
    rows.push_back({slice.name, std::string(text(slice.state)), fmt::format("{}", fmt::join(devices, ",")),
                    fmt::format("{} / {}", text(Bytes{charged}).c_str(), text(Bytes{quota}).c_str()),
                    shares_text(slice), isolation_column(slice),
                    age(until - std::min(until, slice.created_ns)), cut(harmless(slice.command), 60)});
    if (wide)
      rows.back().insert(rows.back().end() - 1, {std::string(text(slice.policy)), units_column(slice),
                                                 harmless(slice.account), workload_column(slice)});
  }
  fmt::print("{}", table(heading, rows));
}

// A list of slices in the form of the controller's lists of objects: {"items": [...]}.
struct SliceItems {
  std::vector<api::Slice> items;
};

void print_names(const api::SliceList& list) {
  for (const api::Slice& slice : list.slices) fmt::print("slice/{}\n", slice.name);
}

void print_or_hint(const api::SliceList& list, const std::string& output) {
  if (output == "name")
    print_names(list);
  else if (list.slices.empty())
    fmt::print(stderr, "No slices. Create one: carve run --memory 2GiB -- PROGRAM\n");
  else
    print(list, output == "wide");
}

// Prints the document if JSON or YAML was requested. Returns whether it did.
template <class T>
bool print_document(const T& document, const std::string& output) {
  if (output == "json") return print_json(document), true;
  if (output == "yaml") return fmt::print("{}", yaml_of(api::write(document))), true;
  return false;
}

// Adds the processes, which are in the agent's document of a single slice but not in its list.
void add_processes(const client::AgentClient& agent, std::vector<api::Slice>& slices) {
  for (api::Slice& slice : slices)
    if (slice.state != SliceState::ended)
      if (auto whole = agent.slice(slice.name)) slice.processes = whole->processes;
}

// Prints the slices in the agent's list with `show`.
template <class Show>
void list_slices(Context& context, client::Slices which, const std::string& output, Show show) {
  const client::AgentClient agent = context.agent();
  auto list = agent.slices(which);
  if (list && (output == "json" || output == "yaml")) add_processes(agent, list->slices);
  answered(context, list, show);
}

}  // namespace

void get_slices(Context& context, const std::string& name, const std::string& output) {
  if (name.empty())
    return list_slices(context, client::Slices::living, output, [&](const auto& list) {
      if (!print_document(SliceItems{list.slices}, output)) print_or_hint(list, output);
    });
  answered(context, context.agent().slice(name), [&](const api::Slice& slice) {
    if (!print_document(slice, output)) print_or_hint({.slices = {slice}}, output);
  });
}

void add_ps(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("ps", "List the slices");
  auto all = std::make_shared<bool>(false);
  verb->add_flag("-a,--all", *all, "Include ended slices");
  add_output(verb, context, {"table", "wide", "json", "yaml", "name"});
  verb->footer("  carve ps -o wide");
  verb->callback([&context, all] {
    list_slices(context, *all ? client::Slices::living_and_ended : client::Slices::living, context.output,
                [&](const auto& list) {
                  if (!print_document(list, context.output)) print_or_hint(list, context.output);
                });
  });
}

}  // namespace carve::cli
