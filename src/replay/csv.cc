#include "replay/csv.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace carve::replay {

Outcome<bool> Csv::read_line() {
  text_.clear();
  ++line_;
  for (int c = 0; (c = getc_unlocked(file_.get())) != EOF && c != '\n';) {
    if (text_.size() == max_line_bytes) return wrong("the line has more than {} bytes", max_line_bytes);
    if (c == '"') return wrong("the line has quotes, which this format does not allow");
    if (c == 0) return wrong("the line has a NUL byte; the file must be text");
    text_.push_back(static_cast<char>(c));
  }
  if (std::ferror(file_.get()) != 0) return wrong("cannot be read: {}", std::strerror(errno));
  const bool end = std::feof(file_.get()) != 0 && text_.empty();
  if (!text_.empty() && text_.back() == '\r') text_.pop_back();
  return !end;
}

Outcome<void> Csv::split() {
  fields_.clear();
  for (size_t begin = 0;;) {
    const size_t comma = std::min(text_.find(',', begin), text_.size());
    fields_.emplace_back(begin, comma - begin);
    if (comma == text_.size()) return {};
    begin = comma + 1;
  }
}

Outcome<Csv> Csv::open(const std::string& path, std::vector<std::string_view> columns, size_t required) {
  Csv csv;
  csv.path_ = path;
  csv.columns_ = std::move(columns);
  csv.file_.reset(std::fopen(path.c_str(), "re"));
  if (!csv.file_)
    return failure(FailureKind::invalid_argument, "{}: cannot be opened: {}", path, std::strerror(errno));
  const auto header = csv.read_line();
  if (!header) return tl::unexpected(header.error());
  if (!*header) return csv.wrong("the file is empty; its first line must name the columns");
  if (const auto good = csv.split(); !good) return tl::unexpected(good.error());
  csv.width_ = csv.fields_.size();
  for (size_t i = 0; i < csv.columns_.size(); ++i) {
    size_t found = SIZE_MAX;
    for (size_t f = 0; f < csv.width_; ++f) {
      if (std::string_view(csv.text_).substr(csv.fields_[f].first, csv.fields_[f].second) != csv.columns_[i])
        continue;
      if (found != SIZE_MAX) return csv.wrong("column '{}' occurs twice", csv.columns_[i]);
      found = f;
    }
    if (found == SIZE_MAX && i < required) return csv.wrong("column '{}' is missing", csv.columns_[i]);
    csv.where_.push_back(found);
  }
  return csv;
}

Outcome<bool> Csv::next() {
  for (;;) {
    const auto more = read_line();
    if (!more || !*more) return more;
    if (!text_.empty()) break;  // Empty lines are ignored.
  }
  if (const auto good = split(); !good) return tl::unexpected(good.error());
  if (fields_.size() != width_)
    return wrong("the row has {} fields, but the header has {}", fields_.size(), width_);
  return true;
}

std::string_view Csv::field(size_t column) const {
  if (where_[column] == SIZE_MAX) return {};
  const auto [begin, length] = fields_[where_[column]];
  return std::string_view(text_).substr(begin, length);
}

Outcome<uint64_t> Csv::number(size_t column, uint64_t least, uint64_t most) const {
  const std::string_view text = field(column);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return wrong("{}: '{}' must be a whole number from {} to {}", columns_[column], text.substr(0, 40), least,
                 most);
  return value;
}

}  // namespace carve::replay
