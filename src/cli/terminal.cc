#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>

namespace carve::cli {

Screen screen() {
  Screen s;
  s.terminal = isatty(STDOUT_FILENO) == 1;
  winsize size{};
  if (s.terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    s.width = size.ws_col;
    s.height = size.ws_row;
  }
  const char* none = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  s.colour =
      s.terminal && (none == nullptr || *none == '\0') && term != nullptr && std::string_view(term) != "dumb";
  return s;
}

std::string inked(const Screen& screen, Ink ink, std::string_view text) {
  if (!screen.colour || ink == Ink::plain) return std::string(text);
  constexpr const char* codes[] = {"0", "1", "2", "31", "32", "33", "34", "35", "36"};
  return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<int>(ink)], text);
}

Ink ink_of(size_t index) {
  constexpr Ink wheel[] = {Ink::green, Ink::cyan, Ink::yellow, Ink::magenta, Ink::blue};
  return wheel[index % std::size(wheel)];
}

std::string harmless(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool c1 = c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    i += c1;  // U+0080 to U+009F are also control characters.
    out += c < 0x20 || c == 0x7f || c1 ? '?' : text[i];
  }
  return out;
}

std::string or_dash(std::string_view text) { return text.empty() ? "-" : harmless(text); }

size_t columns(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((text[i] & 0xc0) != 0x80) {
      ++count;
    }
  }
  return count;
}

std::string padded(std::string_view text, size_t width) {
  const size_t have = columns(text);
  return std::string(text) + std::string(have < width ? width - have : 0, ' ');
}

std::string cut(std::string_view text, size_t width) {
  if (columns(text) <= width) return std::string(text);
  if (width <= 3) return std::string(width, '.');
  size_t bytes = 0, have = 0;
  while (bytes < text.size()) {
    size_t next = bytes + 1;
    while (next < text.size() && (text[next] & 0xc0) == 0x80) ++next;
    if (++have > width - 3) break;
    bytes = next;
  }
  return std::string(text.substr(0, bytes)) + "...";
}

std::string clipped(std::string_view line, size_t width) {
  std::string out;
  size_t have = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      const size_t end = std::min(line.find('m', i), line.size() - 1);
      out += line.substr(i, end - i + 1);
      i = end;
    } else if ((line[i] & 0xc0) == 0x80 ? have <= width : ++have <= width) {
      out += line[i];
    }
  }
  return out;
}

std::string table(const std::vector<std::string>& heading,
                  const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& cell : heading) widths.push_back(columns(cell));
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i)
      text += i + 1 < cells.size() ? padded(cells[i], widths[i] + 2) : cells[i];
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line(heading);
  for (const auto& row : rows) line(row);
  return out;
}

std::string age(uint64_t nanoseconds) {
  const uint64_t s = nanoseconds / 1'000'000'000;
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

std::string span(uint64_t ns) {
  if (ns == 0) return "0";
  if (ns < 1'000'000) return fmt::format("{}us", std::max<uint64_t>(ns / 1000, 1));
  if (ns < 1'000'000'000) return fmt::format("{:.1f}ms", static_cast<double>(ns) / 1e6);
  if (ns < 60'000'000'000) return fmt::format("{:.2f}s", static_cast<double>(ns) / 1e9);
  return age(ns);
}

std::string percent(uint64_t bp) { return fmt::format("{}.{}%", (bp + 5) / 100, (bp + 5) / 10 % 10); }

uint64_t utc_now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

std::string clock_text(uint64_t utc_ns) {
  const time_t seconds = static_cast<time_t>(utc_ns / 1'000'000'000);
  tm broken{};
  localtime_r(&seconds, &broken);
  char text[32];
  std::strftime(text, sizeof text, "%F %T", &broken);
  return text;
}

}  // namespace carve::cli
