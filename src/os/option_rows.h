// Common parts of the option tables of Carve's programs: ways of storing a value, and the rows that every
// program has.
//
//   const std::vector<os::OptionRow<Options>> option_rows = os::with_usual_rows<Options>({
//       {.name = "--state", .value = "DIR", .help = "directory of the ledger", .store =
//       os::keep<&Options::state>},
//   });
#pragma once

#include "os/command_line.h"

namespace carve::os {

// Stores a value unchanged. Several members form a path to a nested field.
template <auto... members>
inline constexpr auto keep = [](auto& options, const std::string& value) -> Outcome<void> {
  (options.*....*members) = value;
  return {};
};
template <auto flag>
inline constexpr auto raise = [](auto& options, const std::string&) -> Outcome<void> {
  options.*flag = true;
  return {};
};
// Selects a mode other than the default.
template <auto mode>
inline constexpr auto enter = [](auto& options, const std::string&) -> Outcome<void> {
  options.mode = mode;
  return {};
};

// Returns --help, --version and --completion, the program's own rows, and --log-level. `Options` has `mode`,
// an enumeration Mode with help, version and completion, and the text `log_level`.
template <class Options>
std::vector<OptionRow<Options>> with_usual_rows(std::vector<OptionRow<Options>> own) {
  using Mode = typename Options::Mode;
  std::vector<OptionRow<Options>> out = {
      {.name = "--help", .letter = "-h", .help = "this text", .store = enter<Mode::help>},
      {.name = "--version", .help = "the version", .store = enter<Mode::version>},
      {.name = "--completion",
       .value = "SHELL",
       .help = "print a completion script for a shell (bash); try:\n"
               "source <(PROGRAM --completion bash)",
       .store = enter<Mode::completion>,
       .words = {"bash"},
       .noun = "a shell with completion"},
  };
  out.insert(out.end(), own.begin(), own.end());
  out.push_back({.name = "--log-level",
                 .value = "LEVEL",
                 .help = "error, warning, info, debug [info]",
                 .store = keep<&Options::log_level>,
                 .words = {"error", "warning", "info", "debug"},
                 .noun = "a level"});
  return out;
}

}  // namespace carve::os
