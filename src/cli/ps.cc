// `carve ps`: prints the slices, one per line.
#include "base/bytes.h"
#include "base/share.h"
#include "cli/sentences.h"
#include "cli/verbs.h"
#include "wire/api/slice.h"

namespace carve::cli {
namespace {

void print(const api::SliceList& list) {
  std::vector<std::vector<std::string>> rows;
  for (const api::Slice& slice : list.slices) {
    std::vector<std::string> devices;
    uint64_t charged = 0, quota = 0;
    for (const api::SlicePart& part : slice.parts) {
      devices.push_back(std::to_string(part.index));
      charged += part.charged_bytes;
      quota += part.quota_bytes;
    }
    const uint32_t share = slice.parts.empty() ? 0 : slice.parts.front().share_bp;
    const uint64_t until = slice.ended_ns != 0 ? slice.ended_ns : utc_now_ns();
    rows.push_back({slice.name, std::string(text(slice.state)), fmt::format("{}", fmt::join(devices, ",")),
                    fmt::format("{} / {}", text(Bytes{charged}).c_str(), text(Bytes{quota}).c_str()),
                    share == 0 ? "-" : text(Share{share}).c_str(), isolation_column(slice),
                    age(until - std::min(until, slice.created_ns)), cut(harmless(slice.command), 60)});
  }
  fmt::print("{}",
             table({"NAME", "STATE", "DEVICE", "MEMORY", "COMPUTE", "ISOLATION", "AGE", "COMMAND"}, rows));
}

// As lists of objects are: {"items": [...]}.
struct SliceItems {
  std::vector<api::Slice> items;
};

void print_or_hint(const api::SliceList& list) {
  if (list.slices.empty())
    fmt::print(stderr, "No slices. Create one: carve run --memory 2GiB -- PROGRAM\n");
  else
    print(list);
}

}  // namespace

void get_slices(Context& context, const std::string& name, const std::string& output) {
  if (output == "yaml") {
    fmt::print(stderr, "carve: slices are printed as a table or with -o json\n");
    context.status = usage_status;
    return;
  }
  const auto printed = [&](const api::SliceList& list) {
    if (output == "name")
      for (const api::Slice& slice : list.slices) fmt::print("slice/{}\n", slice.name);
    else if (output == "json" && !name.empty())
      print_json(list.slices.front());
    else if (output == "json")
      print_json(SliceItems{list.slices});
    else
      print_or_hint(list);
  };
  if (name.empty()) return answered(context, context.client().get<api::SliceList>("/v1/slices"), printed);
  answered(context, context.client().get<api::Slice>("/v1/slices/" + name),
           [&](const api::Slice& slice) { printed({.slices = {slice}}); });
}

void add_ps(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("ps", "List the slices");
  auto all = std::make_shared<bool>(false);
  verb->add_flag("-a,--all", *all, "Include ended slices");
  add_output(verb, context);
  verb->callback([&context, all] {
    answered(context, context.client().get<api::SliceList>(*all ? "/v1/slices?all=true" : "/v1/slices"),
             [&](const auto& list) {
               if (context.json())
                 print_json(list);
               else
                 print_or_hint(list);
             });
  });
}

}  // namespace carve::cli
