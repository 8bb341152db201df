#include "controller/api/label_selector.h"

#include <algorithm>

#include "controller/api/query.h"

namespace carve::controller {
namespace {

using Operator = LabelRequirement::Operator;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

class SelectorReader {
 public:
  explicit SelectorReader(std::string_view text) : whole_(text), left_(text) {}

  Outcome<LabelSelector> read() {
    LabelSelector out;
    skip_blanks();
    if (left_.empty()) return out;
    while (true) {
      if (out.size() == max_selector_requirements)
        return failure(FailureKind::invalid_argument, "labelSelector must have at most {} requirements",
                       max_selector_requirements);
      auto requirement = read_requirement();
      if (!requirement) return tl::unexpected(requirement.error());
      out.push_back(std::move(*requirement));
      skip_blanks();
      if (left_.empty()) return out;
      if (!take(",")) return wrong("a comma");
    }
  }

 private:
  void skip_blanks() { left_.remove_prefix(std::min(left_.find_first_not_of(" \t"), left_.size())); }

  bool take(std::string_view token) {
    skip_blanks();
    if (!left_.starts_with(token)) return false;
    left_.remove_prefix(token.size());
    return true;
  }

  // Takes a word that consists of letters, digits, '-', '_', '.' and, in a key, '/'.
  std::string_view take_word(bool is_key) {
    skip_blanks();
    const auto end = std::ranges::find_if_not(left_, [&](char c) {
      return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.' || (is_key && c == '/');
    });
    const auto word = left_.substr(0, static_cast<size_t>(end - left_.begin()));
    left_.remove_prefix(word.size());
    return word;
  }

  tl::unexpected<Failure> wrong(std::string_view wanted) const {
    return failure(FailureKind::invalid_argument,
                   "labelSelector '{}': {} is expected at byte {}; an example of a selector is "
                   "app=web,tier!=cache,zone in (a,b),zone notin (c),gpu,!debug",
                   whole_.substr(0, max_shown_bytes), wanted, whole_.size() - left_.size());
  }

  Outcome<std::string> read_key() {
    const std::string_view key = take_word(true);
    if (key.empty()) return wrong("a label's key");
    return checked(key);
  }

  Outcome<std::string> checked(std::string_view word) const {
    if (word.size() > max_selector_label_bytes)
      return failure(FailureKind::invalid_argument,
                     "labelSelector: '{}' has {} bytes; a label has at most {}",
                     word.substr(0, max_shown_bytes), word.size(), max_selector_label_bytes);
    return std::string(word);
  }

  Outcome<LabelRequirement> read_requirement() {
    const bool is_negated = take("!");
    auto key = read_key();
    if (!key) return tl::unexpected(key.error());
    LabelRequirement out{
        .key = std::move(*key), .op = is_negated ? Operator::not_exists : Operator::exists, .values = {}};
    skip_blanks();
    if (is_negated || left_.empty() || left_.front() == ',') return out;
    if (take("!=")) return with_value(std::move(out), Operator::not_in);
    if (take("==") || take("=")) return with_value(std::move(out), Operator::in);
    const std::string_view word = take_word(false);
    if (word == "in") return with_list(std::move(out), Operator::in);
    if (word == "notin") return with_list(std::move(out), Operator::not_in);
    left_ = whole_.substr(whole_.size() - left_.size() - word.size());
    return wrong("an operator (=, !=, in, notin)");
  }

  Outcome<LabelRequirement> with_value(LabelRequirement out, Operator op) {
    out.op = op;
    auto value = checked(take_word(false));
    if (!value) return tl::unexpected(value.error());
    out.values.push_back(std::move(*value));
    return out;
  }

  Outcome<LabelRequirement> with_list(LabelRequirement out, Operator op) {
    out.op = op;
    if (!take("(")) return wrong("a list in brackets");
    do {
      auto value = checked(take_word(false));
      if (!value) return tl::unexpected(value.error());
      out.values.push_back(std::move(*value));
    } while (take(","));
    if (!take(")")) return wrong("the closing bracket of the list");
    return out;
  }

  std::string_view whole_, left_;
};

}  // namespace

Outcome<LabelSelector> parse_label_selector(std::string_view text) {
  if (text.size() > max_selector_bytes)
    return failure(FailureKind::invalid_argument, "labelSelector has {} bytes; use at most {}", text.size(),
                   max_selector_bytes);
  return SelectorReader(text).read();
}

bool selects(const LabelSelector& selector, const std::map<std::string, std::string>& labels) {
  return std::ranges::all_of(selector, [&](const LabelRequirement& r) {
    const auto label = labels.find(r.key);
    const bool has_label = label != labels.end();
    const bool has_value = has_label && std::ranges::find(r.values, label->second) != r.values.end();
    switch (r.op) {
      case Operator::in: return has_value;
      case Operator::not_in: return !has_value;
      case Operator::exists: return has_label;
      case Operator::not_exists: return !has_label;
    }
    return false;
  });
}

}  // namespace carve::controller
