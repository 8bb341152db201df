#include "cli/services.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/object_output.h"
#include "cli/suggestions.h"
#include "cli/time_span.h"
#include "wire/api/percent.h"

namespace carve::cli {
namespace {

constexpr std::chrono::milliseconds status_interval{200};

}  // namespace

std::string ObjectName::text() const { return fmt::format("{}/{}", objects::text_of(kind).singular, name); }

Result<std::vector<ObjectName>, std::string> parse_objects(const std::vector<std::string>& words,
                                                           const std::string& name_space) {
  if (words.empty()) return tl::unexpected(std::string("no kind is given; add one, such as services"));
  const bool has_slashes = words.front().find('/') != std::string::npos;
  std::vector<ObjectName> out;
  for (size_t i = has_slashes || words.size() == 1 ? 0 : 1; i < words.size(); ++i) {
    const size_t slash = words[i].find('/');
    if ((slash != std::string::npos) != has_slashes)
      return tl::unexpected(
          fmt::format("'{}': write every object as KIND/NAME, or one KIND followed by names", words[i]));
    const std::string kind = has_slashes ? words[i].substr(0, slash) : words.front();
    const auto known = objects::parse_kind(kind);
    if (!known) return tl::unexpected(unknown_kind(kind));
    const std::string name = has_slashes ? words[i].substr(slash + 1) : words.size() == 1 ? "" : words[i];
    out.push_back({*known, name, name_space});
  }
  return out;
}

Result<std::vector<ObjectName>, std::string> parse_targets(const std::vector<std::string>& words,
                                                           const std::string& name_space) {
  if (words.size() != 1 || words.front().find('/') != std::string::npos)
    return parse_objects(words, name_space);
  std::vector<ObjectName> out;
  if (words.front() == "all") {
    for (const objects::KindText& text : objects::kinds) out.push_back({text.value, "", name_space});
    return out;
  }
  std::string_view rest = words.front();
  for (bool is_last = false; !is_last;) {
    const size_t comma = rest.find(',');
    is_last = comma == std::string_view::npos;
    const std::string word(rest.substr(0, comma));
    rest.remove_prefix(is_last ? rest.size() : comma + 1);
    const auto kind = objects::parse_kind(word);
    if (!kind && (word == "slices" || word == "slice"))
      return tl::unexpected(
          std::string("slices are not objects of the controller; use carve get slices, or carve stop NAME"));
    if (!kind) return tl::unexpected(unknown_kind(word));
    if (std::ranges::find(out, *kind, &ObjectName::kind) == out.end()) out.push_back({*kind, "", name_space});
  }
  return out;
}

Result<ObjectName, std::string> parse_object(const std::vector<std::string>& words,
                                             const std::string& name_space) {
  auto objects = parse_objects(words, name_space);
  if (!objects) return tl::unexpected(std::move(objects.error()));
  if (objects->size() > 1)
    return tl::unexpected(
        fmt::format("unexpected argument '{}'; give one object, such as service/NAME", words.back()));
  return std::move(objects->front());
}

uint32_t wanted_replicas(const objects::Service& s) {
  if (s.spec.stopped) return 0;
  const bool is_scaled = s.spec.autoscale && s.status.desired_replicas != 0;
  return is_scaled ? s.status.desired_replicas : s.spec.replicas;
}

ObjectName eas_object(std::string name) {
  for (char& c : name) c = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return {objects::Kind::service, name};
}

std::optional<ObjectName> required_object(Context& context, const std::vector<std::string>& words,
                                          const std::string& name_space) {
  const auto object = parse_object(words, name_space);
  if (object && !object->name.empty()) return *object;
  fmt::print(stderr, "carve: {}\n",
             object ? "no object is given; add one, such as service/NAME" : object.error());
  context.status = usage_status;
  return std::nullopt;
}

ObjectName name_of(const api::AppliedObject& applied) {
  return {objects::parse_kind(applied.kind).value_or(objects::Kind::service), applied.name,
          applied.namespace_};
}

std::string list_path(objects::Kind kind) { return fmt::format("/v1/{}", objects::text_of(kind).plural); }

std::string object_path(const ObjectName& object, const std::string& verb, const std::string& query) {
  return fmt::format("{}/{}{}{}?namespace={}{}{}", list_path(object.kind), api::percent_encoded(object.name),
                     verb.empty() ? "" : "/", verb, api::percent_encoded(object.name_space),
                     query.empty() ? "" : "&", query);
}

client::Answer<std::vector<objects::Service>> workloads(const client::Client& controller,
                                                        objects::Kind kind) {
  const auto json = whole_list(controller, list_path(kind) + "?namespace=");
  if (!json) return tl::unexpected(json.error());
  auto list = api::read<ServiceList>(*json, api::Reading::lenient);
  if (!list)
    return tl::unexpected(
        api::Problem{.title = "list", .detail = "cannot read the controller's response: " + list.error()});
  return std::move(list->items);
}

std::optional<std::string> slice_named(const std::vector<std::string>& words) {
  if (words.empty() || words.size() > 2) return std::nullopt;
  const size_t slash = words.front().find('/');
  const std::string kind = words.front().substr(0, slash);
  if (kind != "slices" && kind != "slice") return std::nullopt;
  if (slash != std::string::npos)
    return words.size() == 1 ? std::optional(words.front().substr(slash + 1)) : std::nullopt;
  return words.size() == 2 ? words.back() : "";
}

void add_wait(CLI::App* verb, std::string& time, const char* help) {
  verb->add_flag("--wait{10m}", time, help)->check(check_time_span);
}

unsigned seconds_of(const std::string& time) {
  return static_cast<unsigned>(parse_time_span(time).value().count());
}

namespace {

// Returns why replicas are not ready: ": 1 program ended and will be started again", or another reason.
std::string hindrance_of(const objects::ServiceStatus& status) {
  for (const objects::Condition& c : status.conditions)
    if (c.type == "Progressing" && c.reason != "Progressing" && !c.message.empty())
      return ": " + harmless(c.message);
  return "";
}

}  // namespace

bool wait_for_workload(Context& context, const ObjectName& object, unsigned timeout_seconds) {
  const client::Client controller = context.controller();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_seconds);
  std::string last;
  for (;;) {
    const auto service = controller.get<objects::Service>(object_path(object));
    if (!service) return answered(context, service, [](const auto&) {}), false;
    const objects::ServiceStatus& s = service->status;
    const uint32_t wanted = wanted_replicas(*service);
    const bool current = s.observed_generation == service->metadata.generation;
    const std::string line =
        fmt::format("[OK] {} [Total: {}, Pending: {}, Running: {}]{}", current ? text(s.phase) : "Waiting",
                    wanted, wanted - std::min(wanted, s.ready_replicas), s.ready_replicas, hindrance_of(s));
    if (line != last) fmt::print(stderr, "{}\n", line);
    last = line;
    if (current &&
        (s.phase == objects::WorkloadPhase::running || s.phase == objects::WorkloadPhase::stopped ||
         s.phase == objects::WorkloadPhase::succeeded))
      return true;
    const bool failed = current && s.phase == objects::WorkloadPhase::failed;
    if (failed || std::chrono::steady_clock::now() >= deadline) {
      std::string why = failed ? "failed" + (s.ended.empty() ? "" : ": " + s.ended)
                               : fmt::format("still {} after {} s", text(s.phase), timeout_seconds);
      for (const objects::Condition& c : s.conditions)
        if (c.type == "Progressing" && !c.message.empty()) why += ": " + c.message;
      fmt::print(stderr, "carve: {0}: {1}; carve logs {0} shows its output\n", object.text(), harmless(why));
      context.status = failed_status;
      return false;
    }
    std::this_thread::sleep_for(status_interval);
  }
}

}  // namespace carve::cli
