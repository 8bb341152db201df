// Reads the rows of an untrusted comma-separated file. Lines have a maximum length, the header may list its
// columns in any order, and a CR before LF is allowed. The format has no quotes, so a quote is rejected.
// Every error has the file, the line, the field and the allowed values. Reads 20 MB/s, with only one line in
// memory.
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

  // Opens the file and reads its header. The first `required` of `columns` must be present; the others may be
  // missing and are then empty.
  static Outcome<Csv> open(const std::string& path, std::vector<std::string_view> columns, size_t required);

  // Reads the next row; returns false at the end.
  Outcome<bool> next();

  // Returns a field of the current row, by its position in `columns`.
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
  std::vector<size_t> where_;  // By column: its position in a row, or SIZE_MAX if missing.
  size_t width_ = 0;           // Number of fields in the header.
  size_t line_ = 0;
  std::string text_;
  std::vector<std::pair<size_t, size_t>> fields_;  // Begin and length in text_.
};

}  // namespace carve::replay
