#include "cli/json_path.h"

#include <fmt/format.h>

#include "cli/json_path_filter.h"

namespace carve::cli {
namespace {

using api::Json;

// The number of values that one printing has visited.
struct Work {
  size_t visited = 0;
};

using Values = std::vector<const Json*>;

class Search {
 public:
  Search(const Json& root, Work& work) : root_(root), work_(work) {}

  // Returns the values of the path, relative to `current`. Stops when the limit is reached.
  Values find(const JsonPath& path, const Json& current);
  bool is_within_limit() const { return work_.visited <= max_visited_values; }

 private:
  bool visit() { return ++work_.visited <= max_visited_values; }
  void add(const Json& value, Values& out) {
    if (visit()) out.push_back(&value);
  }
  void step(const PathStep&, const Json& value, Values& out);
  void step_to_names(const PathStep&, const Json& value, Values& out);
  void step_to_range(const PathStep&, const Json& list, Values& out);
  void add_descendants(const Json& value, Values& out);
  bool matches(const PathFilter&, const Json& value);

  const Json& root_;
  Work& work_;
};

const Json* member(const Json& value, const std::string& name) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(name);
  return found == value.end() ? nullptr : &*found;
}

void Search::step_to_names(const PathStep& step, const Json& value, Values& out) {
  for (const PathName& wanted : step.names) {
    const Json* found = member(value, wanted.name);
    if (found == nullptr && !wanted.nested.empty()) {
      found = &value;
      for (const std::string& name : wanted.nested)
        if (found != nullptr) found = member(*found, name);
    }
    if (found != nullptr) add(*found, out);
  }
}

void Search::step_to_range(const PathStep& step, const Json& list, Values& out) {
  const auto size = static_cast<int64_t>(list.size());
  const auto from_start = [&](int64_t index) { return index < 0 ? index + size : index; };
  const int64_t first = std::max<int64_t>(from_start(step.first.value_or(0)), 0);
  const int64_t last = std::min(step.last ? from_start(*step.last) : size, size);
  for (int64_t i = first; i < last; i += std::min(step.stride, size)) add(list[static_cast<size_t>(i)], out);
}

// Adds the value and all values in it. The depth of a parsed text is limited (api::max_depth).
void Search::add_descendants(const Json& value, Values& out) {
  add(value, out);
  if (!value.is_structured()) return;
  for (const Json& inner : value)
    if (is_within_limit()) add_descendants(inner, out);
}

void Search::step(const PathStep& step, const Json& value, Values& out) {
  switch (step.kind) {
    case PathStep::Kind::names: return step_to_names(step, value, out);
    case PathStep::Kind::descendants: return add_descendants(value, out);
    case PathStep::Kind::every:
      if (value.is_structured())
        for (const Json& inner : value) add(inner, out);
      return;
    case PathStep::Kind::indexes:
      for (const int64_t index : step.indexes) {
        const int64_t at = index < 0 ? index + static_cast<int64_t>(value.size()) : index;
        if (value.is_array() && at >= 0 && at < static_cast<int64_t>(value.size()))
          add(value[static_cast<size_t>(at)], out);
      }
      return;
    case PathStep::Kind::range:
      if (value.is_array()) step_to_range(step, value, out);
      return;
    case PathStep::Kind::filter:
      if (value.is_array())
        for (const Json& inner : value)
          if (is_within_limit() && matches(*step.filter, inner)) add(inner, out);
      return;
  }
}

bool Search::matches(const PathFilter& filter, const Json& value) {
  const auto values = [&](const FilterSide& side) {
    return side.is_literal ? Values{&side.literal} : find(side.path, value);
  };
  if (!visit()) return false;
  const Values left = values(filter.left);
  if (filter.comparison == Comparison::exists) return !left.empty();
  const Values right = values(filter.right);
  if (left.empty() || right.empty()) return false;
  const Json &a = *left.front(), &b = *right.front();
  // Values of different types have no order.
  const bool are_ordered = (a.is_number() && b.is_number()) || a.type() == b.type();
  switch (filter.comparison) {
    case Comparison::equal: return a == b;
    case Comparison::unequal: return a != b;
    case Comparison::less: return are_ordered && a < b;
    case Comparison::at_most: return are_ordered && a <= b;
    case Comparison::greater: return are_ordered && a > b;
    case Comparison::at_least: return are_ordered && a >= b;
    case Comparison::exists: break;
  }
  return false;
}

Values Search::find(const JsonPath& path, const Json& current) {
  Values values = {path.starts_at_root ? &root_ : &current};
  for (const PathStep& one : path.steps) {
    Values next;
    for (const Json* value : values) step(one, *value, next);
    values = std::move(next);
  }
  return values;
}

std::string too_much() {
  return fmt::format("the path finds more than {} values; use a path that finds fewer", max_visited_values);
}

// Prints the parts. Returns false when a limit is reached.
bool print(const JsonTemplate& parts, const Json& current, const Json& root, Work& work, std::string& out) {
  const auto put = [&](std::string_view text) {
    out += text;
    return out.size() <= max_printed_bytes;
  };
  for (const TemplatePart& part : parts) {
    if (part.kind == TemplatePart::Kind::text) {
      if (!put(part.text)) return false;
      continue;
    }
    Search search(root, work);
    const Values values = search.find(part.path, current);
    if (!search.is_within_limit()) return false;
    for (const Json* value : values)
      if (part.kind == TemplatePart::Kind::range) {
        if (!print(part.body, *value, root, work, out)) return false;
      } else if (!put(value == values.front() ? "" : " ") || !put(plain_text(*value))) {
        return false;
      }
  }
  return true;
}

}  // namespace

std::string plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Result<std::vector<const Json*>, std::string> values_at(const JsonPath& path, const Json& root) {
  Work work;
  Search search(root, work);
  Values values = search.find(path, root);
  if (!search.is_within_limit()) return tl::unexpected(too_much());
  return values;
}

Result<std::string, std::string> printed(const JsonTemplate& parts, const Json& root) {
  Work work;
  std::string out;
  if (!print(parts, root, root, work, out)) {
    if (work.visited > max_visited_values) return tl::unexpected(too_much());
    return tl::unexpected(fmt::format("the output has more than {} MiB", max_printed_bytes >> 20));
  }
  return out;
}

}  // namespace carve::cli
