#include "cli/unknown_words.h"

#include <fmt/format.h>

#include <vector>

#include "cli/help.h"
#include "cli/suggestions.h"
#include "cli/terminal.h"

namespace carve::cli {
namespace {

std::vector<std::string> verbs_of(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::App* one : verb.get_subcommands([](const CLI::App* v) { return !v->get_group().empty(); }))
    if (!one->get_name().empty()) names.push_back(one->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  for (const CLI::App* group : verb.get_subcommands([](const CLI::App* v) { return v->get_name().empty(); }))
    for (const std::string& name : options_of(*group)) names.push_back(name);
  return names;
}

// Returns "; did you mean 'stop'?", "; use carve ps", or `otherwise`.
std::string advice(const std::string& word, const std::vector<std::string>& candidates,
                   const std::string& otherwise) {
  if (const std::string_view here = equivalent_of(word); !here.empty()) return fmt::format("; use {}", here);
  if (const std::string near = nearest(word, candidates); !near.empty())
    return fmt::format("; did you mean '{}'?", near);
  return otherwise;
}

}  // namespace

std::string names_of_verbs(const CLI::App& verb) {
  return fmt::format("{}", fmt::join(verbs_of(verb), ", "));
}

std::string unknown_verb(const CLI::App& app, const std::string& word) {
  return fmt::format("unknown command '{}'{}", harmless(word),
                     advice(word, verbs_of(app), "; 'carve --help' lists the commands"));
}

std::string unknown_option(const CLI::App& verb, std::string_view text) {
  const std::string word(text.substr(0, text.find('=')));
  return fmt::format(
      "{}'{}' is not an option{}", verb.get_parent() == nullptr ? "" : verb.get_name() + ": ", harmless(word),
      advice(word, options_of(verb), fmt::format("; '{} --help' lists the options", full_name(verb))));
}

}  // namespace carve::cli
