#include "cli/plain_objects.h"

#include "cli/object_output.h"
#include "wire/api/percent.h"

namespace carve::cli {
namespace {

// The part that objects of every kind have.
struct PlainObject {
  objects::Metadata metadata;
};
struct PlainList {
  std::vector<PlainObject> items;
};

std::vector<std::string> cells_of(const PlainObject& object) {
  return {harmless(object.metadata.name), harmless(object.metadata.created_at)};
}

}  // namespace

const std::vector<std::string> plain_heading = {"NAME", "CREATED"};

Result<std::vector<std::string>, std::string> plain_cells(const std::string& json) {
  const auto object = api::read<PlainObject>(json, api::Reading::lenient);
  if (!object) return tl::unexpected(object.error());
  return cells_of(*object);
}

void get_plain_objects(Context& context, const ObjectName& object, const std::string& selector,
                       const std::string& output) {
  const client::Client controller = context.controller();
  const bool all = object.name.empty();
  const std::string query = selector.empty() ? "" : "?labelSelector=" + api::percent_encoded(selector);
  const auto text =
      all ? whole_list(controller, list_path(object.kind) + query) : controller.text(object_path(object));
  answered(context, text, [&](const auto& json) {
    if (output == "json") return fmt::print("{}\n", api::indented(json));
    if (output == "yaml") return fmt::print("{}", yaml_of(json));
    const std::string list = all ? json : fmt::format("{{\"items\":[{}]}}", json);
    const auto found = api::read<PlainList>(list, api::Reading::lenient);
    if (!found) {
      complain({.title = "list", .detail = "cannot read the controller's response: " + found.error()});
      context.status = failed_status;
      return;
    }
    const objects::KindText& kind = objects::text_of(object.kind);
    if (output != "name" && found->items.empty())
      return fmt::print(stderr, "No {}. Create one: carve apply -f FILE\n", kind.plural);
    std::vector<std::vector<std::string>> rows;
    for (const PlainObject& one : found->items)
      if (output == "name")
        fmt::print("{}/{}\n", kind.singular, harmless(one.metadata.name));
      else
        rows.push_back(cells_of(one));
    if (output != "name") fmt::print("{}", table(plain_heading, rows));
  });
}

void describe_plain_object(Context& context, const ObjectName& object) {
  answered(context, context.controller().text(object_path(object)),
           [](const auto& json) { fmt::print("{}", yaml_of(json)); });
}

}  // namespace carve::cli
