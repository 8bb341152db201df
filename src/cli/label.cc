// `carve label KIND/NAME KEY=VALUE KEY-`: the labels of any object of the controller.
#include "core/label.h"

#include <algorithm>
#include <span>

#include "cli/node_pools.h"
#include "cli/services.h"
#include "cli/verbs.h"

namespace carve::cli {
namespace {

// The part of the response that the verb reads.
struct Labeled {
  objects::Metadata metadata;
};

struct LabelOptions {
  std::vector<std::string> words;
  std::string name_space = "default";
  bool when_free = false;  // Applies to a node's memory unit.
};

void refuse_labels(Context& context, const std::string& message) { context.refuse(harmless(message)); }

// Returns a merge patch (RFC 7396) of the labels, in which a label to remove is null.
Result<std::string, std::string> label_patch(const std::vector<std::string>& words) {
  if (words.empty())
    return tl::unexpected(std::string("no label is given; use KEY=VALUE to set one, or KEY- to remove one"));
  std::string labels;
  for (const std::string& word : words) {
    const auto change = parse_label_change(word);
    if (!change) return tl::unexpected(change.error().message);
    labels += fmt::format("{}{}:{}", labels.empty() ? "" : ",", api::quoted(change->first),
                          change->second ? api::quoted(*change->second) : "null");
  }
  return fmt::format(R"({{"metadata":{{"labels":{{{}}}}}}})", labels);
}

// Returns whether every change removes a label.
bool only_removes(std::span<const std::string> words) {
  return std::ranges::all_of(words, [](const std::string& word) {
    const auto change = parse_label_change(word);
    return change && !change->second;
  });
}

// Changes the labels of the object. The first word is KIND/NAME, or the first two are KIND and NAME.
void label(Context& context, const LabelOptions& options) {
  const bool has_slash = options.words.front().find('/') != std::string::npos;
  const size_t names = std::min<size_t>(has_slash ? 1 : 2, options.words.size());
  const auto first_label = options.words.begin() + static_cast<std::ptrdiff_t>(names);
  const auto object = required_object(context, {options.words.begin(), first_label}, options.name_space);
  if (!object) return;
  const auto body = label_patch({first_label, options.words.end()});
  if (!body) return refuse_labels(context, body.error());
  const bool is_node = object->kind == objects::Kind::node;
  if (options.when_free && !is_node)
    return refuse_labels(context,
                         "--when-free applies only to the memory unit of a node; leave the option out");
  std::string target = is_node ? node_path(object->name) : object_path(*object);
  if (options.when_free) target += "?whenFree=true";
  answered(context, context.controller().send<Labeled>("PATCH", target, *body), [&](const auto&) {
    fmt::print("{} {}\n", object->text(),
               only_removes({first_label, options.words.end()}) ? "unlabeled" : "labeled");
  });
}

}  // namespace

void add_label(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("label", "Set or remove labels of a controller object");
  auto options = std::make_shared<LabelOptions>();
  verb->add_option(
          "KIND/NAME LABEL", options->words,
          "Object, as KIND/NAME or KIND NAME, and then its labels: KEY=VALUE to set one, KEY- to remove one")
      ->required();
  verb->add_option("-n,--namespace", options->name_space, "Namespace of the object")->capture_default_str();
  verb->add_flag("--when-free", options->when_free,
                 "Change the memory unit of a node once no slice with memory units is left");
  // kubectl requires this flag to replace a value. Carve does not, so it is accepted and ignored.
  verb->add_flag("--overwrite")->description("Ignored, because a label's value is always replaced");
  verb->footer("  carve label node n1 carve.dev/placement=spread zone-\n  carve label job/custom-5 team=a");
  verb->callback([&context, options] { label(context, *options); });
}

}  // namespace carve::cli
