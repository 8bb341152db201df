#include "cli/styled.h"

#include <algorithm>

namespace carve::cli {

std::string plain(const StyledLine& line) {
  std::string out;
  for (const Span& span : line.spans) out += span.text;
  return out;
}

std::string inked(const Screen& screen, const StyledLine& line) {
  std::string out;
  for (const Span& span : line.spans) out += inked(screen, span.ink, span.text);
  return out;
}

size_t columns(const StyledLine& line) {
  size_t out = 0;
  for (const Span& span : line.spans) out += columns(span.text);
  return out;
}

StyledLine clipped(const StyledLine& line, size_t width) {
  StyledLine out{.reversed = line.reversed};
  for (const Span& span : line.spans) {
    const size_t have = columns(span.text);
    out.add(have <= width ? span.text : clipped(span.text, width), span.ink);
    width -= std::min(width, have);
  }
  return out;
}

}  // namespace carve::cli
