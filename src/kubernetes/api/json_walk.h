// Reads a JSON document without building a tree: a subclass receives each string, number and boolean with its
// path.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carve::kubernetes {

// A level of the document: the current key, or a list.
struct JsonLevel {
  std::string key;
  bool is_list = false;
};

// Returns whether the path consists of these keys.
bool is_path(std::span<const JsonLevel> path, std::initializer_list<std::string_view> keys);

class JsonWalk : private nlohmann::json_sax<nlohmann::json> {
 public:
  // Returns false and sets the problem if the text is not JSON or is nested too deeply.
  bool read(std::string_view text);
  const std::string& problem() const { return problem_; }

 protected:
  ~JsonWalk() override = default;
  virtual void value(std::span<const JsonLevel> path, const std::string& text) = 0;
  // Called at the end of an object.
  virtual void closed(std::span<const JsonLevel> path) { static_cast<void>(path); }

 private:
  bool null() override { return true; }
  bool boolean(bool value) override { return taken(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return taken(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return taken(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return taken(text); }
  bool string(string_t& value) override { return taken(value); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return entered(false); }
  bool start_array(size_t) override { return entered(true); }
  bool key(string_t& key) override;
  bool end_object() override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override;

  bool entered(bool is_list);
  bool taken(const std::string& text);

  std::vector<JsonLevel> levels_;
  std::string problem_;
};

}  // namespace carve::kubernetes
