// yaml-cpp parses; this file handles its events and writes JSON. yaml-cpp's own tree is not used, because it
// keeps the first of two equal keys and reads 010 as 8.
#include "yaml/yaml_documents.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <set>
#include <sstream>

#include "wire/api/json_value.h"
#include "yaml/yaml_scalar.h"

namespace carve::yaml {
namespace {

constexpr std::string_view core_tag = "tag:yaml.org,2002:";
constexpr size_t max_shown_bytes = 60;

std::string cut(std::string text) {
  if (text.size() > max_shown_bytes) text = text.substr(0, max_shown_bytes) + "...";
  return text;
}

// An error after which the rest of the text is not parsed.
struct Stop {};

class Writer : public YAML::EventHandler {
 public:
  Writer(size_t first_line, DocumentRoom& room, std::vector<std::string>& documents, api::FieldErrors& errors)
      : first_line_(first_line), room_(room), documents_(documents), errors_(errors) {}

  void OnDocumentStart(const YAML::Mark&) override {
    out_.clear();
    levels_.clear();
    anchors_.clear();
  }
  void OnDocumentEnd() override {
    if (out_ != "null") documents_.push_back(std::move(out_));
    room_.bytes -= std::min(room_.bytes, out_.size());
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (is_key()) stop(mark, "a key is empty; write a string");
    count(mark, 1);
    write(mark, "null", anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (is_key()) stop(mark, "a key is an alias; use a string");
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      stop(mark, "an alias is inside the value that it refers to; move it after that value");
    const Anchored anchored = found->second;
    if (levels_.size() + anchored.height > api::max_depth) stop(mark, too_deep());
    check_room(mark, anchored.end - anchored.begin);
    count(mark, anchored.nodes);
    write(mark, out_.substr(anchored.begin, anchored.end - anchored.begin), 0, anchored.height);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (text.find('\0') != std::string::npos) stop(mark, "a string contains a NUL character; remove it");
    count(mark, 1);
    if (is_key()) return set_key(mark, tag, text);
    check_room(mark, text.size());
    write(mark, scalar(mark, tag, text), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, "seq", anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, "map", anchor);
  }
  void OnSequenceEnd() override { close(']'); }
  void OnMapEnd() override { close('}'); }

  [[noreturn]] void stop(const YAML::Mark& mark, const std::string& message) {
    refuse(mark, "", message);
    throw Stop();
  }

 private:
  struct Anchored {
    size_t begin = 0, end = 0;  // In `out_`.
    size_t height = 0;          // Levels of the value; a scalar has none.
    size_t nodes = 1;           // Values and keys.
  };
  struct Level {
    bool is_map = false;
    YAML::anchor_t anchor = 0;
    size_t begin = 0;   // In `out_`.
    size_t height = 1;  // So far.
    size_t items = 0;
    size_t counted_before = 0;  // Nodes, before this one.
    bool has_key = false;       // The next value belongs to `key`.
    std::string key;
    std::set<std::string> keys;
  };

  bool is_key() const { return !levels_.empty() && levels_.back().is_map && !levels_.back().has_key; }
  static std::string too_deep() {
    return fmt::format("the document is nested deeper than {} levels", api::max_depth);
  }
  std::string path() const {
    std::string out;
    for (const Level& level : levels_) {
      if (!level.is_map)
        out += fmt::format("[{}]", level.items - (&level == &levels_.back() ? 0 : 1));
      else if (!level.key.empty())
        out += (out.empty() ? "" : ".") + cut(level.key);
    }
    return out;
  }
  void refuse(const YAML::Mark& mark, const std::string& value, const std::string& message) {
    if (errors_.size() == api::max_field_errors) throw Stop();
    const size_t line = first_line_ + static_cast<size_t>(std::max(mark.line, 0));
    const std::string field = path();
    errors_.push_back(
        {.field = field,
         .value = cut(value),
         .message = fmt::format("line {}: {}{}{}", line, field, field.empty() ? "" : ": ", message)});
  }
  void check_room(const YAML::Mark& mark, size_t bytes) {
    if (bytes > room_.bytes || out_.size() > room_.bytes - bytes)
      stop(mark, "the documents are too large when their aliases are expanded; use fewer aliases");
  }
  // Counts values and keys. Those of an alias count each time they are copied.
  void count(const YAML::Mark& mark, size_t nodes) {
    if (nodes > room_.nodes) stop(mark, api::too_many_nodes());
    room_.nodes -= nodes;
    counted_ += nodes;
  }
  // Keys are texts, as in JSON: `1: a` becomes {"1": "a"}.
  void set_key(const YAML::Mark& mark, const std::string& tag, const std::string& text) {
    Level& level = levels_.back();
    level.key = text;
    level.has_key = true;
    if (tag == "?" && text == "<<")
      refuse(mark, text, "merge keys are not in YAML 1.2; write out the fields");
    else if (tag != "?" && tag != "!" && tag != std::string(core_tag) + "str")
      refuse(mark, text, fmt::format("the key has the tag '{}'; remove it", cut(tag)));
    else if (!level.keys.insert(text).second)
      refuse(mark, text, "the key occurs twice; keep one of them");
  }
  // Returns the scalar as JSON.
  std::string scalar(const YAML::Mark& mark, const std::string& tag, const std::string& text) {
    if (tag == "!" || tag == std::string(core_tag) + "str") return api::quoted(text);
    const Scalar read = plain_scalar(text);
    if (tag != "?") {
      const bool is_decimal = read.type == ScalarType::decimal;
      const bool fits =
          (tag == std::string(core_tag) + "int" && read.type == ScalarType::integer) ||
          (tag == std::string(core_tag) + "float" && (is_decimal || read.type == ScalarType::integer)) ||
          (tag == std::string(core_tag) + "bool" && read.type == ScalarType::boolean);
      if (!fits) {
        refuse(mark, text,
               fmt::format("'{}' has the tag '{}', which does not match its value; remove the tag", cut(text),
                           cut(tag)));
        return "null";
      }
    }
    if (!read.message.empty()) {
      refuse(mark, text, read.message);
      return "null";
    }
    return read.type == ScalarType::text ? api::quoted(text) : read.json;
  }
  // Writes the comma and the key that precede a value.
  void begin_value() {
    if (levels_.empty()) return;
    Level& level = levels_.back();
    if (level.items++ > 0) out_ += ',';
    if (level.is_map) out_ += api::quoted(level.key) + ":";
    level.has_key = false;
  }
  void end_value(YAML::anchor_t anchor, size_t begin, size_t height, size_t nodes) {
    if (anchor != 0)
      anchors_[anchor] = {.begin = begin, .end = out_.size(), .height = height, .nodes = nodes};
    if (!levels_.empty()) levels_.back().height = std::max(levels_.back().height, height + 1);
  }
  void write(const YAML::Mark& mark, const std::string& json, YAML::anchor_t anchor, size_t height = 0) {
    if (levels_.empty() && json != "null")
      stop(mark, "the document is a single value; write an object with fields");
    begin_value();
    const size_t begin = out_.size();
    out_ += json;
    end_value(anchor, begin, height, 1);
    check_room(mark, 0);
  }
  void open(const YAML::Mark& mark, const std::string& tag, std::string_view type, YAML::anchor_t anchor) {
    if (is_key()) stop(mark, "a key is an object or a list; use a string");
    if (levels_.size() == api::max_depth) stop(mark, too_deep());
    const bool is_map = type == "map";
    if (levels_.empty() && !is_map) stop(mark, "the document is a list; write an object with fields");
    if (tag != "?" && tag != "!" && tag != fmt::format("{}{}", core_tag, type))
      refuse(mark, "", fmt::format("the tag '{}' is unknown; remove it", cut(tag)));
    count(mark, 1);
    begin_value();
    levels_.push_back({.is_map = is_map,
                       .anchor = anchor,
                       .begin = out_.size(),
                       .counted_before = counted_ - 1,
                       .key = {},
                       .keys = {}});
    out_ += is_map ? '{' : '[';
  }
  void close(char bracket) {
    out_ += bracket;
    const Level level = std::move(levels_.back());
    levels_.pop_back();
    end_value(level.anchor, level.begin, level.height, counted_ - level.counted_before);
  }

  size_t first_line_;
  DocumentRoom& room_;
  size_t counted_ = 0;
  std::vector<std::string>& documents_;
  api::FieldErrors& errors_;
  std::string out_;
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, Anchored> anchors_;
};

}  // namespace

void read_yaml(std::string_view text, size_t first_line, DocumentRoom& room,
               std::vector<std::string>& documents, api::FieldErrors& errors) {
  if (errors.size() == api::max_field_errors) return;
  Writer writer(first_line, room, documents, errors);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(writer)) continue;
  } catch (const Stop&) {
    return;
  } catch (const YAML::Exception& error) {
    try {
      writer.stop(error.mark, fmt::format("not YAML: {}", error.msg));
    } catch (const Stop&) {
      return;
    }
  }
}

}  // namespace carve::yaml
