#include "wire/api/json.h"

namespace carve::api {

Result<Json, std::string> parse(std::string_view text) {
  int deepest = 0;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    deepest = std::max(deepest, depth);
    return depth <= max_depth;
  };
  // The callback keeps deep values out of memory, and the parser itself does not recurse.
  Json out = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (out.is_discarded()) return tl::unexpected(std::string("the document is not JSON"));
  if (deepest > max_depth)
    return tl::unexpected(fmt::format("the document is nested deeper than {} levels", max_depth));
  return out;
}

namespace detail {

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace detail
}  // namespace carve::api
