// `carve help VERB`: the text of `carve VERB --help`.
#include "cli/verbs.h"

namespace carve::cli {

void add_help(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("help", "Explain a verb: carve help rollout status");
  auto words = std::make_shared<std::vector<std::string>>();
  verb->add_option("VERB", *words, "The verb and the verbs below it [the list of verbs]");
  verb->callback([&app, &context, words] {
    const CLI::App* explained = &app;
    for (const std::string& word : *words) {
      const auto found =
          explained->get_subcommands([&](const CLI::App* one) { return one->check_name(word); });
      if (found.empty()) {
        fmt::print(stderr, "carve: '{}' is not a verb; 'carve help' lists the verbs\n", harmless(word));
        context.status = usage_status;
        return;
      }
      explained = found.front();
    }
    // help() of the program would return the text of this verb, because it was called.
    fmt::print("{}", app.get_formatter()->make_help(explained, "", CLI::AppFormatMode::Normal));
  });
}

}  // namespace carve::cli
