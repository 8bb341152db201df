#include "kubernetes/api/testing/selector.h"

#include <algorithm>

namespace carve::kubernetes {
namespace {

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(at), text.size());
    if (end > 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

const nlohmann::json* found(const nlohmann::json& object, const std::string& key) {
  const auto at = object.find(key);
  return at != object.end() ? &*at : nullptr;
}

}  // namespace

ApiPath parse_api_path(std::string_view target) {
  ApiPath out;
  const size_t mark = std::min(target.find('?'), target.size());
  for (const std::string& pair : split(target.substr(mark), '&')) {
    const std::string_view whole = std::string_view(pair).substr(pair.starts_with('?') ? 1 : 0);
    const size_t equal = std::min(whole.find('='), whole.size());
    out.query[std::string(whole.substr(0, equal))] =
        percent_decoded(whole.substr(std::min(equal + 1, whole.size())));
  }
  auto words = split(target.substr(0, mark), '/');
  const size_t prefix_words = !words.empty() && words[0] == "api" ? 2 : 3;
  if (words.size() <= prefix_words || (words[0] != "api" && words[0] != "apis")) return out;
  for (size_t i = 0; i < prefix_words; ++i) out.prefix += "/" + words[i];
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(prefix_words));
  if (words.size() >= 3 && words[0] == "namespaces" && words[2] != "status" && words[2] != "finalize") {
    out.name_space = words[1];
    words.erase(words.begin(), words.begin() + 2);
  }
  out.resource = words[0];
  if (words.size() > 1) out.name = words[1];
  if (words.size() > 2) out.subresource = words[2];
  return out;
}

Selector::Selector(Of of, std::string_view text) : of_(of) {
  for (const std::string& each : split(text, ',')) {
    const size_t equal = each.find('=');
    if (each.starts_with('!'))
      conditions_.push_back({each.substr(1), Condition::Kind::is_absent, ""});
    else if (equal == std::string::npos)
      conditions_.push_back({each, Condition::Kind::exists, ""});
    else if (equal > 0 && each[equal - 1] == '!')
      conditions_.push_back({each.substr(0, equal - 1), Condition::Kind::differs, each.substr(equal + 1)});
    else
      conditions_.push_back({each.substr(0, equal), Condition::Kind::equals,
                             each.substr(std::min(each.find_first_not_of('=', equal), each.size()))});
  }
}

bool Selector::matches(const nlohmann::json& object) const {
  return std::ranges::all_of(conditions_, [&](const Condition& condition) {
    const nlohmann::json* at = &object;
    if (of_ == Of::labels) {
      for (const char* level : {"metadata", "labels"})
        if (at != nullptr) at = found(*at, level);
      if (at != nullptr) at = found(*at, condition.key);
    } else {
      for (const std::string& level : split(condition.key, '.'))
        if (at != nullptr) at = found(*at, level);
    }
    const std::string value = at != nullptr && at->is_string() ? at->get<std::string>() : "";
    switch (condition.kind) {
      case Condition::Kind::equals: return value == condition.value && (at != nullptr || of_ == Of::fields);
      case Condition::Kind::differs: return value != condition.value;
      case Condition::Kind::exists: return at != nullptr;
      case Condition::Kind::is_absent: return at == nullptr;
    }
    return false;
  });
}

}  // namespace carve::kubernetes
