// The terminal's capabilities, and tables for it. Colour is used only on a terminal, and not with NO_COLOR
// (no-color.org) or TERM=dumb. Piped output is plain text for awk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace carve::cli {

struct Screen {
  bool terminal = false;  // Standard output is a terminal.
  bool colour = false;
  unsigned width = 120;  // In columns. The default is used for a pipe, which has no width.
  unsigned height = 24;
};
Screen screen();

enum class Ink { plain, bold, dim, red, green, yellow, blue, magenta, cyan };
std::string inked(const Screen& screen, Ink ink, std::string_view text);
Ink ink_of(size_t index);  // Neighbouring slices get different colours.

// Returns `text` with '?' for each control character. Use it for texts from other users, such as command
// lines.
std::string harmless(std::string_view text);
std::string or_dash(std::string_view text);  // harmless(text), or "-" if it is empty.

// Returns the number of columns of `text` (UTF-8) on a terminal; control sequences are not counted.
size_t columns(std::string_view text);
std::string clipped(std::string_view line, size_t width);  // Cut at `width`, without "..."; control sequences
                                                           // stay.
std::string padded(std::string_view text, size_t width);
std::string cut(std::string_view text,
                size_t width);  // Cut at `width` with "..."; plain text only.

// Returns the heading and the rows. A column is as wide as its widest cell, with two spaces between columns.
std::string table(const std::vector<std::string>& heading, const std::vector<std::vector<std::string>>& rows);

// Returns how long ago: "3s", "5m12s", "2h03m", "4d07h".
std::string age(uint64_t nanoseconds);
// Returns a duration: "0", "85us", "3.2ms", "1.50s", then like age().
std::string span(uint64_t nanoseconds);
std::string percent(uint64_t basis_points);  // "29.9%": tenths, for measured values.
uint64_t utc_now_ns();
std::string clock_text(uint64_t utc_ns);  // "2026-11-21 09:00:00", local time.

}  // namespace carve::cli
