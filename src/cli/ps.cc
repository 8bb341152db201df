// `carve ps`: prints the slices, one per line.
#include "base/bytes.h"
#include "base/share.h"
#include "cli/detached_programs.h"
#include "cli/messages.h"
#include "cli/output_format.h"
#include "cli/verbs.h"
#include "wire/api/json_value.h"
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

enum class Ended : uint8_t { left_out, listed };

// Prints the slices of the agent at the socket. With ended slices there is a column for their exit statuses.
void print(const api::SliceList& list, const OutputOptions& output, Ended ended,
           const std::string& agent_socket) {
  const bool wide = parse_output_format(output.format)->kind == OutputFormat::Kind::wide;
  std::vector<std::string> heading = {"NAME",    "STATE",     "DEVICE", "MEMORY",
                                      "COMPUTE", "ISOLATION", "AGE",    "COMMAND"};
  if (ended == Ended::listed) heading.insert(heading.begin() + 2, "EXIT");
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
    if (ended == Ended::listed)
      rows.back().insert(rows.back().begin() + 2,
                         slice.ended_ns == 0 ? "-" : kept_exit_status(agent_socket, slice));
    if (wide)
      rows.back().insert(rows.back().end() - 1, {std::string(text(slice.policy)), units_column(slice),
                                                 harmless(slice.account), workload_column(slice)});
  }
  fmt::print("{}", listed(output, heading, rows));
}

// A list of slices in the form of the controller's lists of objects: {"items": [...]}.
struct SliceItems {
  std::vector<api::Slice> items;
};

// Prints the document, whose list has the key `list_key`, in the requested form.
template <class T>
void show(Context& context, const T& document, const std::string& list_key, const OutputOptions& output,
          Ended ended = Ended::left_out) {
  auto json = api::parse(api::write(document));
  const Listing listing{.list_key = list_key,
                        .name = [](const api::Json& slice) { return "slice/" + slice.value("name", ""); }};
  if (!json || print_document(context, output, *json, listing)) return;
  // The table follows the order of the sorted document.
  const std::string sorted = list_key.empty() ? fmt::format(R"({{"slices":[{}]}})", json->dump())
                                              : fmt::format(R"({{"slices":{}}})", (*json)[list_key].dump());
  const auto list = api::read<api::SliceList>(sorted, api::Reading::lenient);
  if (!list || list->slices.empty())
    fmt::print(stderr, "No slices. Create one: carve run --memory 2GiB -- PROGRAM\n");
  else
    print(*list, output, ended, context.agent().socket());
}

// Adds the processes, which are in the agent's document of a single slice but not in its list.
void add_processes(const client::AgentClient& agent, std::vector<api::Slice>& slices) {
  for (api::Slice& slice : slices)
    if (slice.state != SliceState::ended)
      if (auto whole = agent.slice(slice.name)) slice.processes = whole->processes;
}

// Calls `act` with the slices in the agent's list.
template <class Act>
void list_slices(Context& context, client::Slices which, const OutputOptions& output, Act act) {
  const client::AgentClient agent = context.agent();
  auto list = agent.slices(which);
  const auto format = parse_output_format(output.format);
  if (list && format && !format->is_table() && format->kind != OutputFormat::Kind::name)
    add_processes(agent, list->slices);
  answered(context, list, act);
}

}  // namespace

void get_slices(Context& context, const std::string& name, const OutputOptions& output) {
  if (name.empty())
    return list_slices(context, client::Slices::living, output,
                       [&](const auto& list) { show(context, SliceItems{list.slices}, "items", output); });
  answered(context, context.agent().slice(name),
           [&](const api::Slice& slice) { show(context, slice, "", output); });
}

void add_ps(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("ps", "List the slices");
  auto all = std::make_shared<bool>(false);
  verb->add_flag("-a,--all", *all, "Include ended slices");
  auto output = std::make_shared<OutputOptions>();
  add_output_options(verb, *output);
  verb->footer("  carve ps -o wide\n  carve ps -a --sort-by .created_ns --no-headers");
  verb->callback([&context, all, output] {
    list_slices(context, *all ? client::Slices::living_and_ended : client::Slices::living, *output,
                [&](const auto& list) {
                  show(context, list, "slices", *output, *all ? Ended::listed : Ended::left_out);
                });
  });
}

}  // namespace carve::cli
