#include "replay/json_lines.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace carve::replay {
namespace {

// An iterator over the text. It stores in `reached` how far the parser has read.
struct Walk {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  const char** reached;
  reference operator*() const { return *at; }
  Walk& operator++() {
    *reached = ++at;
    return *this;
  }
  Walk operator++(int) {
    const Walk before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Walk& other) const { return at == other.at; }
};

class Tree {
 public:
  using Lib = nlohmann::json;
  Tree(std::string_view text, const std::string& name) : text_(text), name_(name), reached_(text.data()) {}

  bool read() {
    const char* end = text_.data() + text_.size();
    return Lib::sax_parse(Walk{text_.data(), &reached_}, Walk{end, &reached_}, this);
  }

  // The functions that nlohmann's parser calls.
  bool null() { return put(Json::Kind::null); }
  bool boolean(bool value) { return put(Json::Kind::boolean, value ? 1 : 0); }
  bool number_unsigned(uint64_t value) { return put(Json::Kind::number, value); }
  bool number_integer(int64_t value) { return put(Json::Kind::other, 0, std::to_string(value)); }
  bool number_float(double, const std::string& written) { return put(Json::Kind::other, 0, written); }
  bool string(std::string& value) { return put(Json::Kind::text, 0, std::move(value)); }
  bool binary(Lib::binary_t&) { return false; }
  bool start_array(size_t) { return open(Json::Kind::list); }
  bool start_object(size_t) { return open(Json::Kind::object); }
  bool end_array() { return close(); }
  bool end_object() { return close(); }
  bool key(std::string& name) {
    const auto& members = path_.back()->members;
    if (members.size() == Json::max_members)
      return complain(fmt::format("has more than {} fields", Json::max_members));
    if (std::ranges::find(members, name, &JsonMember::name) != members.end())
      return complain(fmt::format("'{}' occurs twice", name.substr(0, 40)));
    key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t, const std::string&, const Lib::exception&) {
    return complain(reached_ == text_.data() + text_.size() ? "invalid JSON: the text is truncated"
                                                            : "invalid JSON");
  }

  Json root;
  std::string error;

 private:
  // Returns the line of the last character of the value. For a number, the parser has read one character too
  // far.
  size_t line() {
    const char* last = std::max(text_.data(), reached_ - 1);
    line_ += static_cast<size_t>(std::count(counted_, last, '\n'));
    counted_ = last;
    return line_;
  }
  Json& place() {
    if (path_.empty()) return root;
    Json& in = *path_.back();
    return in.kind == Json::Kind::list ? in.items.emplace_back()
                                       : in.members.emplace_back(JsonMember{std::move(key_), Json{}}).value;
  }
  bool put(Json::Kind kind, uint64_t number = 0, std::string text = {}) {
    Json& value = place();
    value.kind = kind;
    value.line = line();
    value.number = number;
    value.text = std::move(text);
    return true;
  }
  bool open(Json::Kind kind) {
    if (path_.size() == Json::max_levels)
      return complain(fmt::format("is nested deeper than {} levels", Json::max_levels));
    Json& value = place();
    value.kind = kind;
    value.line = line();
    path_.push_back(&value);
    return true;
  }
  bool close() {
    path_.pop_back();
    return true;
  }
  bool complain(std::string_view why) {
    error = fmt::format("{}:{}: {}", name_, line(), why);
    return false;
  }

  std::string_view text_;
  const std::string& name_;
  const char* reached_;
  const char* counted_ = text_.data();
  size_t line_ = 1;
  // A list or object grows only while it is the innermost open one, so the addresses of the other levels stay
  // valid.
  std::vector<Json*> path_;
  std::string key_;
};

}  // namespace

// Defined here, because JsonMember must be complete.
Json::Json() = default;
Json::~Json() = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(Json&&) noexcept = default;

Outcome<Json> parse_json(std::string_view text, const std::string& name) {
  Tree tree(text, name);
  if (!tree.read()) return failure(FailureKind::invalid_argument, "{}", tree.error);
  return std::move(tree.root);
}

}  // namespace carve::replay
