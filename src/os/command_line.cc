#include "os/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "core/words.h"

namespace carve::os {
namespace {

constexpr size_t max_shown_bytes = 80;  // Bytes of an invalid value that are shown in an error message.

// Returns the table in CLI11's form. A repeated option keeps all its values, and unknown words are kept too.
std::unique_ptr<CLI::App> app(const CommandLine& line) {
  auto app = std::make_unique<CLI::App>(line.about, line.program);
  app->set_help_flag();
  app->allow_extras();
  app->get_formatter()->column_width(30);
  app->footer(line.footer);
  for (const OptionForm& form : line.forms) {
    const std::string names =
        form.letter[0] == '\0' ? form.name : fmt::format("{},{}", form.letter, form.name);
    if (form.takes_value())
      app->add_option(names, CLI::callback_t{}, form.help)->type_name(form.value)->take_all();
    else
      app->add_flag(names, form.help)->take_all();
  }
  return app;
}

tl::unexpected<Failure> without_value(const CommandLine& line, const std::string& option) {
  return failure(FailureKind::invalid_argument, "{} needs a value; {} --help explains it", option,
                 line.program);
}

// Checks the rules that each option has, before the rules of its value.
Outcome<void> check(const CommandLine& line, const OptionForm& form, const std::string& value,
                    const std::string& first) {
  if (!form.takes_value() && value != "true")
    return failure(FailureKind::invalid_argument, "{} takes no value; remove '={}'", form.name, shown(value));
  if (form.takes_value() && value.empty()) return without_value(line, form.name);
  if (std::ranges::any_of(value, is_control))
    return failure(FailureKind::invalid_argument, "{} '{}' has a control character; use printable characters",
                   form.name, shown(value));
  if (!form.repeatable && value != first)
    return failure(FailureKind::invalid_argument, "{} '{}': {} is already set to '{}'; give it only once",
                   form.name, shown(value), form.name, shown(first));
  if (!form.words.empty()) return known_word(form.name, value, form.noun, form.words);
  return {};
}

}  // namespace

bool is_control(char c) { return (c >= 0 && c < ' ') || c == 0x7f; }

std::string shown(const std::string& word) {
  std::string text = word.substr(0, max_shown_bytes);
  std::ranges::replace_if(text, is_control, '?');
  return text;
}

int complain(const char* program, const Failure& f) {
  fmt::print(stderr, "{}: {}\n", program, f.message);
  return f.kind == FailureKind::invalid_argument ? 2 : 1;
}

int print_text(const std::string& text) { return fputs(text.c_str(), stdout) < 0; }

std::string absolute(const std::string& path, const std::string& from) {
  return path.empty() || path[0] == '/' ? path : from + "/" + path;
}

Outcome<void> known_word(const std::string& option, const std::string& value, const char* noun,
                         const std::vector<std::string_view>& words) {
  if (std::ranges::find(words, value) != words.end()) return {};
  return failure(FailureKind::invalid_argument, "{} '{}' is not {}; use {}", option, shown(value), noun,
                 choice(words));
}

std::string CommandLine::help() const { return app(*this)->help(); }

std::string CommandLine::completion() const {
  std::string names, cases;
  for (const OptionForm& form : forms) {
    names += fmt::format("{} ", form.name);
    if (!form.words.empty())
      cases += fmt::format("    {}) words=\"{}\" ;;\n", form.name, fmt::join(form.words, " "));
    else if (form.takes_value())
      cases += fmt::format("    {}) return ;;\n", form.name);  // Bash completes file names.
  }
  std::string function = program;
  std::ranges::replace(function, '-', '_');
  return fmt::format(R"(_{function}() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words="{names}"
  case "${{COMP_WORDS[COMP_CWORD-1]}}" in
{cases}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _{function} {program}
)",
                     fmt::arg("function", function), fmt::arg("names", names), fmt::arg("cases", cases),
                     fmt::arg("program", program));
}

Outcome<void> CommandLine::parse(int argc, char** argv, const Store& store,
                                 const std::function<bool()>& is_complete) const {
  const auto parser = app(*this);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  // CLI11 reads the word after "--state=" as the value.
  for (const std::string& word : words)
    for (const OptionForm& form : forms)
      if (word == fmt::format("{}=", form.name))
        if (const auto good = check(*this, form, "", ""); !good) return good;
  std::ranges::reverse(words);  // CLI11 reads the words from the back.
  const std::string last = words.empty() ? "" : words.front();
  try {
    parser->parse(words);
  } catch (const CLI::ArgumentMismatch&) {
    return without_value(*this, last);
  }
  for (size_t i = 0; i < forms.size(); ++i) {
    const auto& values = parser->get_option(forms[i].name)->results();
    for (const std::string& value : values) {
      if (const auto good = check(*this, forms[i], value, values[0]); !good) return good;
      if (const auto good = store(i, value); !good) return good;
    }
    if (is_complete()) return {};
  }
  if (const auto unknown = parser->remaining(); !unknown.empty())
    return failure(FailureKind::invalid_argument, "unknown option {}; {} --help lists the options",
                   shown(unknown[0]), program);
  return {};
}

}  // namespace carve::os
