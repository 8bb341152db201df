// Messages about words that are no verb or option of `carve`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace carve::cli {

// Returns "cancel, drain, ..." for the verbs below this one that the help lists.
std::string names_of_verbs(const CLI::App& verb);

// Returns "unknown command 'cancle'; did you mean 'cancel'?".
std::string unknown_verb(const CLI::App& app, const std::string& word);

// Returns "run: '--memroy' is not an option; did you mean '--memory'?". The text may have a value behind '='.
std::string unknown_option(const CLI::App& verb, std::string_view text);

}  // namespace carve::cli
