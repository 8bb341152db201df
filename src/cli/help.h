// The help texts of `carve`: the layout of an option, a verb and a page, at most 100 columns wide.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace carve::cli {

inline constexpr size_t help_columns = 100;

// Writes "-o, --output OUTPUT  Output format: table or json [table]". The name of a value is that of the option
// unless the option names it, and its words, range and default are part of the description.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App*) const override;
  std::string make_usage(const CLI::App*, std::string name) const override;
  std::string make_option(const CLI::Option*, bool is_positional) const override;
  std::string make_subcommand(const CLI::App*) const override;
};

// Returns the verb with the words that lead to it: "carve rollout status".
std::string full_name(const CLI::App& verb);

// Returns the text in lines of at most `width` columns. Lines after the first are indented.
std::string wrapped(std::string_view text, size_t width, size_t indent);

}  // namespace carve::cli
