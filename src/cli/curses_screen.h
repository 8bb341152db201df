// The terminal of the interactive `carve top`, by ncurses: the alternate screen, keys, and lines drawn with the
// least output. Only one may exist at a time. Not thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "cli/top_frame.h"

namespace carve::cli {

class CursesScreen {
 public:
  explicit CursesScreen(bool colour);
  ~CursesScreen();  // Restores the terminal.
  CursesScreen(const CursesScreen&) = delete;
  CursesScreen& operator=(const CursesScreen&) = delete;

  bool is_open() const { return screen_ != nullptr; }  // False if the terminal's type (TERM) is unknown.
  bool is_fine() const { return fine_; }               // The locale's text is UTF-8.
  TopSize size() const;
  std::optional<TopKey> key() const;  // A key that was pressed, without waiting; unknown keys are left out.
  void show(const std::vector<StyledLine>& lines) const;

 private:
  void* screen_ = nullptr;  // ncurses' SCREEN.
  bool colour_ = false;
  bool fine_ = false;
};

}  // namespace carve::cli
