#include "fronts/documents.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <regex>

#include "wire/api/json_value.h"
#include "wire/objects/object.h"

namespace carve::fronts {
namespace {

using api::FieldErrors;
using api::Json;

// Why a document is refused. It never leaves this file.
struct Refused {
  std::string sentence;
};

[[noreturn]] void refuse(const YAML::Node& node, const std::string& sentence) {
  throw Refused{fmt::format("line {}: {}", node.Mark().line + 1, sentence)};
}

std::string cut(const std::string& text) { return text.substr(0, 60); }

bool is_one_of(const std::string& text, std::initializer_list<const char*> words) {
  return std::ranges::find(words, text) != words.end();
}

// Returns the value of an unquoted scalar (YAML 1.2.2, section 10.3.2).
Json plain_value(const YAML::Node& node) {
  static const std::regex integer("[-+]?[0-9]+"), hexadecimal("0x[0-9a-fA-F]+"), octal("0o[0-7]+"),
      decimal("[-+]?(\\.[0-9]+|[0-9]+(\\.[0-9]*)?)([eE][-+]?[0-9]+)?"), ambiguous("[-+]?0[0-9_]+");
  const std::string& text = node.Scalar();
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (is_one_of(text, {"true", "True", "TRUE"})) return true;
  if (is_one_of(text, {"false", "False", "FALSE"})) return false;
  if (text.size() > 40) return text;
  if (std::regex_match(text, ambiguous))
    refuse(node,
           fmt::format("{} is 8 times smaller in some versions of YAML; write it without the leading 0, "
                       "or in quotes if it is a text",
                       cut(text)));
  const auto whole = [&](const std::string& digits, int base) -> Json {
    try {
      if (!digits.starts_with('-')) return std::stoull(digits, nullptr, base);
      return std::stoll(digits, nullptr, base);
    } catch (const std::out_of_range&) {
      refuse(node, fmt::format("{} does not fit 64 bits", cut(text)));
    }
  };
  if (std::regex_match(text, integer)) return whole(text, 10);
  if (std::regex_match(text, hexadecimal)) return whole(text.substr(2), 16);
  if (std::regex_match(text, octal)) return whole(text.substr(2), 8);
  // A decimal number stays a text, with all its digits: 0.30 is no binary number.
  if (std::regex_match(text, decimal)) return text;
  return text;
}

class YamlReader {
 public:
  Json read(const YAML::Node& node, int depth = 1) {
    if (++nodes_ > max_document_nodes)
      refuse(node, fmt::format("there are more than {} values, with aliases expanded", max_document_nodes));
    if (depth > api::max_depth)
      refuse(node, fmt::format("the document is nested deeper than {} levels", api::max_depth));
    if (!is_one_of(node.Tag(),
                   {"", "?", "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}))
      refuse(node, fmt::format("the tag {} has no meaning here; leave it out", cut(node.Tag())));
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null: return nullptr;
      case YAML::NodeType::Scalar: return node.Tag() == "?" ? plain_value(node) : Json(node.Scalar());
      case YAML::NodeType::Sequence: return list(node, depth);
      case YAML::NodeType::Map: break;
    }
    return object(node, depth);
  }

 private:
  Json list(const YAML::Node& node, int depth) {
    Json out = Json::array();
    for (const YAML::Node& item : node) out.push_back(read(item, depth + 1));
    return out;
  }

  Json object(const YAML::Node& node, int depth) {
    Json out = Json::object();
    for (const auto& member : node) {
      const YAML::Node &key = member.first, &value = member.second;
      if (!key.IsScalar()) refuse(key, "a key is not a text");
      if (key.Scalar() == "<<") refuse(key, "the merge key << is not read; write the fields out");
      if (out.contains(key.Scalar()))
        refuse(key, fmt::format("{}: the key is there twice", cut(key.Scalar())));
      out[key.Scalar()] = read(value, depth + 1);
    }
    return out;
  }

  size_t nodes_ = 0;
};

bool has_nul(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().find('\0') != std::string::npos;
  if (!value.is_structured()) return false;
  return std::ranges::any_of(value.items(), [](const auto& member) {
    return member.key().find('\0') != std::string::npos || has_nul(member.value());
  });
}

// Returns the JSON text of a document.
std::string json_text(const Json& document) {
  if (has_nul(document)) throw Refused{"a text has a NUL byte"};
  if (!document.is_object()) throw Refused{"the document is not an object with fields"};
  try {
    return document.dump();
  } catch (const Json::exception&) {
    throw Refused{"the document is not UTF-8"};
  }
}

std::vector<std::string> yaml_documents(std::string_view text) {
  std::vector<std::string> out;
  for (const YAML::Node& node : YAML::LoadAll(std::string(text))) {
    if (node.IsNull()) continue;  // An empty document: `---` at the begin or the end.
    if (out.size() == max_documents)
      throw Refused{fmt::format("there are more than {} documents", max_documents)};
    out.push_back(json_text(YamlReader().read(node)));
  }
  return out;
}

std::string json_document(std::string_view text) {
  const auto json = api::parse(text);
  if (!json) throw Refused{json.error()};
  (void)json_text(*json);
  return std::string(text);  // As it was written, to the byte.
}

// Returns the parts between lines of `---`.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> out;
  size_t begin = 0, line = 0;
  while (line < text.size()) {
    const size_t end = std::min(text.find('\n', line), text.size());
    std::string_view one = text.substr(line, end - line);
    if (one.ends_with('\r')) one.remove_suffix(1);
    if (one == "---") {
      out.push_back(text.substr(begin, line - begin));
      begin = end;
    }
    line = end + 1;
  }
  out.push_back(text.substr(std::min(begin, text.size())));
  return out;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

std::vector<std::string> read(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
  if (!is_json) return yaml_documents(text);
  std::vector<std::string> out;
  for (const std::string_view part : parts_of(text)) {
    if (is_blank(part)) continue;
    if (out.size() == max_documents)
      throw Refused{fmt::format("there are more than {} documents", max_documents)};
    out.push_back(json_document(part));
  }
  return out;
}

}  // namespace

Result<std::vector<std::string>, FieldErrors> documents_of(std::string_view text) {
  const auto refused = [](std::string sentence) {
    return tl::unexpected(FieldErrors{{.field = "", .value = "", .sentence = std::move(sentence)}});
  };
  if (text.size() > objects::max_document_bytes)
    return refused(
        fmt::format("the text has {} bytes; at most {} are read", text.size(), objects::max_document_bytes));
  try {
    return read(text);
  } catch (const Refused& r) {
    return refused(r.sentence);
  } catch (const YAML::Exception& e) {
    return refused(fmt::format("line {}: {}", e.mark.line + 1, e.msg));
  }
}

}  // namespace carve::fronts
