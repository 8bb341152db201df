// Common parts of the annotations of pods and nodes. An annotation is one line of JSON that starts with
// `"v"`. Parsing is strict, so that a program never acts on half of a newer program's annotation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/api/json.h"

namespace carve::kubernetes {

inline constexpr size_t max_annotation_bytes = 16 << 10;

struct AnnotationVersion {
  uint32_t v = 0;
};

// Parses an annotation into T, which must have the member `v`. Fails with a message if the version differs or
// a field is unknown.
template <class T>
Result<T, std::string> read_annotation(std::string_view name, std::string_view text, uint32_t version) {
  if (text.size() > max_annotation_bytes)
    return tl::unexpected(
        fmt::format("{} has {} bytes; it may have at most {}", name, text.size(), max_annotation_bytes));
  // A text that does not start as Carve's programs write it is parsed twice, to find the version.
  if (!text.starts_with(fmt::format(R"({{"v":{},)", version))) {
    const auto written = api::read<AnnotationVersion>(text, api::Reading::lenient);
    if (!written) return tl::unexpected(fmt::format("{}: {}", name, written.error()));
    if (written->v != version)
      return tl::unexpected(
          fmt::format("{} version {}: this program reads {}; upgrade it", name, written->v, version));
  }
  auto out = api::read<T>(text, api::Reading::strict);
  if (!out) return tl::unexpected(fmt::format("{}: {}", name, out.error()));
  return out;
}

}  // namespace carve::kubernetes
