// Lines of a screen as parts of one colour each, for drawing by ncurses or as control sequences.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.h"

namespace carve::cli {

struct Span {
  Ink ink = Ink::plain;
  std::string text;  // UTF-8 without control characters.
};
struct StyledLine {
  std::vector<Span> spans;
  bool reversed = false;  // Drawn in reverse video over the whole width.

  StyledLine& add(std::string_view text, Ink ink = Ink::plain) {
    if (!text.empty()) spans.push_back({ink, std::string(text)});
    return *this;
  }
  StyledLine& add(const StyledLine& other) {
    spans.insert(spans.end(), other.spans.begin(), other.spans.end());
    return *this;
  }
};

std::string plain(const StyledLine& line);                        // Without colours.
std::string inked(const Screen& screen, const StyledLine& line);  // With the screen's control sequences.
size_t columns(const StyledLine& line);
StyledLine clipped(const StyledLine& line, size_t width);  // Cut at `width`, without "...".

}  // namespace carve::cli
