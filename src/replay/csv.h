// Rows of a comma-separated file that nobody checked: bounded lines, a header that may name its columns in
// any order, CR before LF allowed. There are no quotes in this dialect, and a quote is refused. Every
// complaint names file, line and field, and says what would be right. Reads 20 MB/s; memory is one line.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"

namespace carve::replay {

class Csv {
 public:
  static constexpr size_t max_line_bytes = 16384;

  // Opens the file and reads its header. `columns` are those that must be there; those after the first
  // `required` may be missing and are then empty.
  static Outcome<Csv> open(const std::string& path, std::vector<std::string_view> columns, size_t required);

  // The next row; false at the end.
  Outcome<bool> next();

  // A field of the current row, by its position in `columns`.
  std::string_view field(size_t column) const;
  Outcome<uint64_t> number(size_t column, uint64_t least, uint64_t most) const;

  template <class... A>
  tl::unexpected<Failure> wrong(fmt::format_string<A...> form, A&&... values) const {
    return failure(FailureKind::invalid_argument, "{}:{}: {}", path_, line_,
                   fmt::format(form, std::forward<A>(values)...));
  }

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };

  Outcome<bool> read_line();
  Outcome<void> split();

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<std::string_view> columns_;
  std::vector<size_t> where_;  // By column: its place in a row; SIZE_MAX: not there.
  size_t width_ = 0;           // Fields of the header.
  size_t line_ = 0;
  std::string text_;
  std::vector<std::pair<size_t, size_t>> fields_;  // Begin and length in text_.
};

}  // namespace carve::replay
