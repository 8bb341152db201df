// `carve completion bash|zsh|fish`: generated from the verbs and options, so that it always matches them.
#include <cstdio>

#include "cli/verbs.h"

namespace carve::cli {
namespace {

// Returns "--memory --devices ..." of one verb, with its short options.
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

bool takes_slice(std::string_view verb) {
  return verb == "show" || verb == "stop" || verb == "set" || verb == "thaw";
}

// Returns the script. `before` is the command that enables bash's programmable completion in the shell.
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
    if (takes_slice(verb->get_name())) words += " $(carve ps 2>/dev/null | awk 'NR > 1 { print $1 }')";
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

std::string fish(const CLI::App& app) {
  std::string out = "complete -c carve -f\n";
  for (const CLI::App* verb : shown_verbs(app)) {
    out += fmt::format("complete -c carve -n __fish_use_subcommand -a {} -d '{}'\n", verb->get_name(),
                       verb->get_description());
    for (const CLI::Option* option : verb->get_options())
      for (const std::string& name : option->get_lnames())
        out += fmt::format("complete -c carve -n '__fish_seen_subcommand_from {}' -l {}{}\n",
                           verb->get_name(), name,
                           values_of(*option).empty() ? "" : fmt::format(" -x -a '{}'", values_of(*option)));
    if (takes_slice(verb->get_name()))
      out += fmt::format(
          "complete -c carve -n '__fish_seen_subcommand_from {}' -a \"(carve ps 2>/dev/null | awk 'NR > 1 {{ "
          "print $1 }}')\"\n",
          verb->get_name());
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& app, Context&) {
  CLI::App* verb = app.add_subcommand("completion", "Print shell completion: bash, zsh or fish");
  auto shell = std::make_shared<std::string>();
  verb->add_option("SHELL", *shell, "bash, zsh or fish")
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
