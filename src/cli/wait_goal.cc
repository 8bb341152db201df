#include "cli/wait_goal.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal.h"
#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

using api::Json;

constexpr std::string_view condition_prefix = "condition=", path_prefix = "jsonpath=";

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Returns whether the status is about the present spec.
bool is_current(const Json& object) {
  const Json status = object.value("status", Json::object());
  return !status.contains("observedGeneration") ||
         status["observedGeneration"] == object.value("/metadata/generation"_json_pointer, Json());
}

// Returns whether the phase implies the condition, for objects without a condition of that type.
bool implies(const Json& object, const std::string& condition) {
  const Json status = object.value("status", Json::object());
  const std::string phase = status.value("phase", status.value("state", std::string()));
  if (condition == "ready" || condition == "available") return phase == "Running" && is_current(object);
  if (condition == "complete") return phase == "Succeeded";
  return condition == "failed" && phase == "Failed" && is_current(object);
}

bool has_condition(const WaitGoal& goal, const Json& object) {
  const std::string wanted = in_lower_case(goal.condition), value = in_lower_case(goal.value);
  for (const Json& one : object.value("/status/conditions"_json_pointer, Json::array()))
    if (in_lower_case(one.value("type", std::string())) == wanted)
      return in_lower_case(one.value("status", std::string())) == value;
  return implies(object, wanted) == (value == "true");
}

Result<WaitGoal, std::string> parse_path_goal(const std::string& text) {
  const size_t brace = text.rfind('}');
  const size_t equals = text.find('=', brace == std::string::npos ? 0 : brace);
  auto parsed = parse_template(std::string_view(text).substr(0, equals));
  if (!parsed) return tl::unexpected("jsonpath: " + parsed.error());
  std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (equals != std::string::npos && value.empty())
    return tl::unexpected(
        std::string("jsonpath: the value after '=' is missing; leave out '=' to wait for any value"));
  return WaitGoal{
      .kind = WaitGoal::Kind::jsonpath, .value = std::move(value), .json_template = std::move(*parsed)};
}

}  // namespace

Result<WaitGoal, std::string> parse_wait_goal(const std::string& text) {
  if (text == "delete") return WaitGoal{.kind = WaitGoal::Kind::deletion};
  if (text.starts_with(path_prefix)) return parse_path_goal(text.substr(path_prefix.size()));
  if (text.starts_with(condition_prefix)) {
    const std::string rest = text.substr(condition_prefix.size());
    const size_t equals = rest.find('=');
    const std::string value = equals == std::string::npos ? "True" : rest.substr(equals + 1);
    if (!rest.substr(0, equals).empty() && !value.empty())
      return WaitGoal{.condition = rest.substr(0, equals), .value = value};
  }
  return tl::unexpected(
      fmt::format("'{}' cannot be waited for; use condition=NAME, condition=NAME=False, delete or "
                  "jsonpath={{PATH}}=VALUE",
                  harmless(text)));
}

bool is_reached(const WaitGoal& goal, const Json& object) {
  if (goal.kind == WaitGoal::Kind::condition) return has_condition(goal, object);
  if (goal.kind == WaitGoal::Kind::deletion) return false;
  const auto text = printed(goal.json_template, object);
  return text && (goal.value.empty() ? !text->empty() : *text == goal.value);
}

}  // namespace carve::cli
