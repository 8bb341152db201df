// What the terminal on the other side can show, and tables drawn for it. Colour only on a terminal, never
// with NO_COLOR (no-color.org) or TERM=dumb; piped output is plain text that awk can read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace carve::cli {

struct Screen {
  bool terminal = false;  // Standard output is one.
  bool colour = false;
  unsigned width = 120;  // Where nobody says: a pipe has none.
  unsigned height = 24;
};
Screen screen();

enum class Ink { plain, bold, dim, red, green, yellow, blue, magenta, cyan };
std::string inked(const Screen& screen, Ink ink, std::string_view text);
Ink ink_of(size_t index);  // Neighbouring slices get different ones.

// Texts that others chose, such as command lines, with '?' for whatever would steer the terminal.
std::string harmless(std::string_view text);

// The columns a terminal needs for `text` (UTF-8, control sequences not counted).
size_t columns(std::string_view text);
std::string clipped(std::string_view line, size_t width);  // Without; control sequences are kept.
std::string padded(std::string_view text, size_t width);
std::string cut(std::string_view text,
                size_t width);  // With "..." where something is missing; plain text only.

// Rows under a heading, columns as wide as their widest cell, two spaces between.
std::string table(const std::vector<std::string>& heading, const std::vector<std::vector<std::string>>& rows);

// "3s", "5m12s", "2h03m", "4d07h": how long ago.
std::string age(uint64_t nanoseconds);
// "0", "85us", "3.2ms", "1.50s", then as age(): how long something took.
std::string span(uint64_t nanoseconds);
std::string percent(uint64_t basis_points);  // "29.9%": to a tenth, for what was measured.
uint64_t utc_now_ns();
std::string clock_text(uint64_t utc_ns);  // "2026-11-21 09:00:00" local time.

}  // namespace carve::cli
