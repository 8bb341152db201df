// `carve completion bash|zsh|fish`: generated from the verbs and options, so that it always matches them.
#include <algorithm>
#include <cstdio>

#include "cli/verbs.h"
#include "objects/kind.h"

namespace carve::cli {
namespace {

// Returns the verb's options, "--memory --devices ...", including the short ones.
std::string flags_of(const CLI::App& verb) {
  std::vector<std::string> words;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    for (const std::string& name : option->get_snames()) words.push_back("-" + name);
  }
  return fmt::format("{}", fmt::join(words, " "));
}

// Returns the values of an option if they are fixed. CLI11 keeps them in the option's type: "TEXT:{a,b}".
std::string values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find(":{"), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return "";
  std::string words = type.substr(open + 2, close - open - 2);
  for (char& c : words)
    if (c == ',') c = ' ';
  return words;
}

std::vector<const CLI::App*> shown_verbs(const CLI::App& app) {
  std::vector<const CLI::App*> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App* v) { return !v->get_group().empty(); }))
    verbs.push_back(verb);
  return verbs;
}

// Shell commands that print the names of slices, nodes or objects. They run only when the user presses Tab.
constexpr std::string_view slices = "carve get slices -o name 2>/dev/null | cut -d/ -f2";
constexpr std::string_view slice_objects = "carve get slices -o name 2>/dev/null";
constexpr std::string_view nodes = "carve get nodes -o name 2>/dev/null | cut -d/ -f2";
constexpr std::string_view workload_names =
    "carve get services -o name 2>/dev/null; carve get applications -o name 2>/dev/null";
constexpr std::string_view logs =
    "carve get services -o name 2>/dev/null; carve get applications -o name 2>/dev/null; "
    "carve get slices -o name 2>/dev/null";

bool is_any(std::string_view verb, std::initializer_list<std::string_view> verbs) {
  return std::ranges::find(verbs, verb) != verbs.end();
}

// Returns the shell command that lists the verb's objects; empty if it has none.
std::string_view names_of(std::string_view verb) {
  if (is_any(verb, {"show", "stop", "set", "thaw", "wait", "exec"})) return slices;
  if (verb == "history") return slice_objects;
  if (is_any(verb, {"cordon", "uncordon", "drain", "label"})) return nodes;
  if (verb == "logs") return logs;
  if (is_any(verb, {"describe", "edit", "delete", "scale", "autoscale", "rollout"})) return workload_names;
  return "";
}

// Returns the kinds of objects that the verb accepts; empty if it accepts none.
std::string kinds_of(std::string_view verb) {
  if (!is_any(verb, {"get", "explain"})) return "";
  std::string out = verb == "get" ? "slices" : "";
  for (const objects::KindText& text : objects::kinds)
    out += fmt::format("{}{}", out.empty() ? "" : " ", text.plural);
  return out;
}

// Returns the completion script. `before` is the command that enables bash's programmable completion in the
// shell.
std::string bash(const CLI::App& app, const char* before) {
  std::string verbs, cases;
  std::string of_options;  // A line for each option with fixed values: "run:--policy".
  const auto learn = [&](const std::string& verb, const CLI::App& with) {
    for (const CLI::Option* option : with.get_options()) {
      const std::string words = values_of(*option);
      if (words.empty() || option->get_positional()) continue;
      std::vector<std::string> names;
      for (const std::string& name : option->get_lnames()) names.push_back(verb + ":--" + name);
      for (const std::string& name : option->get_snames()) names.push_back(verb + ":-" + name);
      of_options += fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n",
                                fmt::join(names, " | "), words);
    }
  };
  for (const CLI::App* verb : shown_verbs(app)) {
    verbs += verb->get_name() + " ";
    std::string words = flags_of(*verb);
    learn(verb->get_name(), *verb);
    for (const CLI::App* inner : verb->get_subcommands(nullptr)) {
      words += " " + inner->get_name() + " " + flags_of(*inner);
      learn(verb->get_name(), *inner);
    }
    words += " " + kinds_of(verb->get_name());
    if (const auto names = names_of(verb->get_name()); !names.empty()) words += fmt::format(" $({})", names);
    cases += fmt::format("    {}) words=\"{}\" ;;\n", verb->get_name(), words);
  }
  return fmt::format(R"({}_carve() {{
  local words="" word="${{COMP_WORDS[COMP_CWORD]}}" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then COMPREPLY=($(compgen -c -f -- "$word")); return; fi
  done
  case "${{COMP_WORDS[1]}}:${{COMP_WORDS[COMP_CWORD-1]}}" in
{}  esac
  case "${{COMP_WORDS[1]}}" in
{}    *) words="{}--socket --help --version" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _carve carve
)",
                     before, of_options, cases, verbs);
}

// Returns the text as one word of fish.
std::string fish_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// Returns the part of a line that describes the option: its names and its argument.
std::string fish_option(const CLI::Option& option) {
  std::string out;
  for (const std::string& name : option.get_lnames()) out += " -l " + name;
  for (const std::string& name : option.get_snames()) out += " -s " + name;
  if (out.empty()) return out;
  if (const std::string values = values_of(option); !values.empty())
    out += " -x -a " + fish_word(values);
  else if (is_any(option.get_type_name(), {"FILE", "PATH", "DIR"}))
    out += " -r -F";  // Completes files, which the first line of the script turned off.
  else if (option.get_items_expected_max() > 0)
    out += " -x";
  return out + " -d " + fish_word(option.get_description());
}

// Adds a line for each option. `when` is the beginning of the line.
void add_fish_options(const CLI::App& verb, const std::string& when, std::string& out) {
  for (const CLI::Option* option : verb.get_options())
    if (const std::string words = fish_option(*option); !words.empty()) out += when + words + "\n";
}

// Adds a line for each option and each subcommand. `before` is fish's condition for the verbs before it.
void add_fish_lines(const CLI::App& verb, const std::string& before, std::string& out) {
  const std::string seen = fmt::format("{}__fish_seen_subcommand_from {}", before, verb.get_name());
  const std::string when = fmt::format("complete -c carve -n '{}'", seen);
  add_fish_options(verb, when, out);
  for (const CLI::App* inner : verb.get_subcommands(nullptr)) {
    if (inner->get_name().empty()) {  // A group of options.
      add_fish_options(*inner, when, out);
      continue;
    }
    out += fmt::format("{} -a {} -d {}\n", when, inner->get_name(), fish_word(inner->get_description()));
    add_fish_lines(*inner, seen + "; and ", out);
  }
}

std::string fish(const CLI::App& app) {
  std::string out = "complete -c carve -f\n";
  for (const CLI::App* verb : shown_verbs(app)) {
    const std::string& name = verb->get_name();
    out += fmt::format("complete -c carve -n __fish_use_subcommand -a {} -d {}\n", name,
                       fish_word(verb->get_description()));
    add_fish_lines(*verb, "", out);
    std::string arguments = kinds_of(name);
    if (const auto names = names_of(name); !names.empty()) arguments = fmt::format("({})", names);
    if (!arguments.empty())
      out += fmt::format("complete -c carve -n '__fish_seen_subcommand_from {}' -a {}\n", name,
                         fish_word(arguments));
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& app, Context&) {
  CLI::App* verb = app.add_subcommand("completion", "Print the completion script for bash, zsh or fish");
  auto shell = std::make_shared<std::string>();
  verb->add_option("SHELL", *shell, "Shell: bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->footer("  source <(carve completion bash)");
  verb->callback([&app, shell] {
    std::string text;
    if (*shell == "fish")
      text = fish(app);
    else
      text = bash(app, *shell == "zsh" ? "autoload -Uz bashcompinit && bashcompinit\n" : "");
    std::fputs(text.c_str(), stdout);
  });
}

}  // namespace carve::cli
