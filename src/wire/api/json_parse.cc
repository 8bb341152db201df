// Converts JSON text to values, using the events of the JSON library's parser. The library's own tree keeps
// the last of two equal keys and accepts any depth. This parser rejects both as soon as they occur, before
// they cost memory or time.
#include <algorithm>
#include <iterator>

#include "wire/api/json_value.h"

namespace carve::api {
namespace {

constexpr std::string_view not_json = "the document is not JSON";
constexpr size_t max_shown_key_bytes = 60;

// An iterator that reports how far the parser has read.
class Watched {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Watched(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  Watched& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  friend bool operator==(const Watched& a, const Watched& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  const char** reached_;
};

// Receives the parser's events and builds the value. An event that returns false stops the parser.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(Decimals decimals, size_t depth, size_t nodes)
      : decimals_(decimals), depth_(depth), max_nodes_(nodes) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    return decimals_ == Decimals::as_texts ? add(text) : add(value);
  }
  bool string(string_t& text) override {
    if (text.find('\0') != std::string::npos) return refuse("a string contains a NUL character; remove it");
    return add(std::move(text));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!count_node()) return false;
    Level& level = levels_.back();
    level.key = name;
    if (name.find('\0') != std::string::npos) return refuse("a key contains a NUL character; remove it");
    if (!level.keys.insert(name).second) return refuse("the key occurs twice; keep one of them");
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    if (message_.empty()) message_ = not_json;
    return false;
  }

  Json take() { return std::move(root_); }
  const std::string& field() const { return field_; }
  const std::string& message() const { return message_; }
  size_t nodes() const { return nodes_; }

 private:
  struct Level {
    Json* container;
    std::set<std::string, std::less<>> keys;  // Keys of the object so far.
    std::string key;                          // The last key.
  };

  // Adds to the object without searching for the key, because key() has already done so.
  template <class Value>
  Json* put(Value&& value) {
    if (levels_.empty()) {
      root_ = Json(std::forward<Value>(value));
      return &root_;
    }
    Level& level = levels_.back();
    if (level.container->is_array()) return &level.container->emplace_back(std::forward<Value>(value));
    auto& members =
        static_cast<std::vector<Json::object_t::value_type>&>(level.container->get_ref<Json::object_t&>());
    return &members.emplace_back(level.key, Json(std::forward<Value>(value))).second;
  }
  bool count_node() {
    if (nodes_ < max_nodes_) return ++nodes_ != 0;
    message_ = too_many_nodes();
    return false;
  }
  template <class Value>
  bool add(Value&& value) {
    if (!count_node()) return false;
    put(std::forward<Value>(value));
    return true;
  }
  bool open(Json container) {
    if (!count_node()) return false;
    if (levels_.size() == depth_) {
      message_ = fmt::format("the document is nested deeper than {} levels", depth_);
      return false;
    }
    Json* at = put(std::move(container));
    levels_.push_back({.container = at, .keys = {}, .key = {}});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }
  bool refuse(std::string_view what) {
    for (const Level& level : levels_)
      if (level.container->is_array()) {
        const bool has_item = &level != &levels_.back();  // The item is the next level.
        field_ += fmt::format("[{}]", level.container->size() - (has_item ? 1 : 0));
      } else {
        const std::string key = level.key.size() > max_shown_key_bytes
                                    ? level.key.substr(0, max_shown_key_bytes) + "..."
                                    : level.key;
        field_ += (field_.empty() ? "" : ".") + key.substr(0, key.find('\0'));
      }
    message_ = fmt::format("{}: {}", field_.empty() ? "document" : field_, what);
    return false;
  }

  Decimals decimals_;
  size_t depth_;
  size_t max_nodes_;
  size_t nodes_ = 0;
  Json root_;
  std::vector<Level> levels_;
  std::string field_, message_;
};

// With `strict`, only white space may follow the value.
Result<Parsed, ParseError> parse_value(std::string_view text, Decimals decimals, bool strict, size_t depth,
                                       size_t nodes) {
  // The library's parser treats a NUL character as the end of the text.
  const std::string_view readable = text.substr(0, text.find('\0'));
  const char* reached = readable.data();
  Builder builder(decimals, depth, nodes);
  const bool good = Json::sax_parse(Watched(readable.data(), &reached),
                                    Watched(readable.data() + readable.size(), &reached), &builder,
                                    Json::input_format_t::json, strict);
  const auto length = static_cast<size_t>(reached - readable.data());
  if (!good)
    return tl::unexpected(
        ParseError{.offset = length, .field = builder.field(), .message = builder.message()});
  if (strict && readable.size() != text.size())
    return tl::unexpected(ParseError{.offset = length, .field = "", .message = std::string(not_json)});
  return Parsed{.value = builder.take(), .length = length, .nodes = builder.nodes()};
}

}  // namespace

std::string too_many_nodes() {
  return fmt::format("there are more than {} values and keys; send them in parts", max_nodes);
}

Result<Parsed, ParseError> parse_leading(std::string_view text, Decimals decimals, size_t nodes) {
  return parse_value(text, decimals, /*strict=*/false, max_depth, nodes);
}

Result<Json, std::string> parse(std::string_view text, Decimals decimals, size_t depth, size_t nodes) {
  auto parsed = parse_value(text, decimals, /*strict=*/true, depth, nodes);
  if (!parsed) return tl::unexpected(std::move(parsed.error().message));
  return std::move(parsed->value);
}

}  // namespace carve::api
