// Any text as a JSONPath template, as a path or as -o, for a list of objects, yields an output or a message.
#include <cstdint>
#include <cstdlib>

#include "cli/json_path.h"
#include "cli/output_format.h"
#include "wire/api/json_value.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  using namespace carve::cli;
  static const api::Json list = api::parse(R"({"items":[{"metadata":{"name":"a","labels":{"a.b":"c"}},"n":1},
    {"metadata":{"name":"b"},"n":2,"list":[1,2,3]}]})")
                                    .value();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto parsed = parse_template(text);
  if (!parsed && parsed.error().empty()) std::abort();
  if (parsed)
    if (const auto out = printed(*parsed, list); out && out->size() > max_printed_bytes) std::abort();
  if (const auto path = parse_path(text)) (void)values_at(*path, list);
  const auto format = parse_output_format(text);
  if (!format && format.error().empty()) std::abort();
  if (format) {
    const auto cells = custom_cells(*format, list["items"][0]);
    if (cells ? cells->size() != format->columns.size() : cells.error().empty()) std::abort();
  }
  return 0;
}
