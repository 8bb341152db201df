// The command line of a program that has options but no subcommands. Its parser, its help and its completion
// come from one table. CLI11 splits the words into options and values and prints the help. Messages about
// invalid values are Carve's own, because CLI11's messages contain neither the allowed values nor how to fix
// the error.
//
//   const std::vector<os::OptionRow<Options>> option_rows = {
//       {.name = "--state", .value = "DIR", .help = "directory of the ledger", .store = ...}, ...};
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"

namespace carve::os {

// The part of an option's row that does not depend on the type of the options.
struct OptionForm {
  const char* name;
  const char* letter;
  const char* value;
  const char* help;
  std::vector<std::string_view> words;
  const char* noun;
  bool repeatable;

  bool takes_value() const { return value[0] != '\0'; }
};

template <class Options>
struct OptionRow {
  const char* name;         // "--state"
  const char* letter = "";  // "-h"
  const char* value = "";   // Name of the value in the help. Empty if the option takes no value.
  const char* help = "";
  // Stores a value. Fails if the value breaks a rule.
  Outcome<void> (*store)(Options&, const std::string& value) = nullptr;
  std::vector<std::string_view> words;  // Allowed values. Empty if any value is allowed.
  const char* noun = "";                // A noun for the words: "an action".
  bool repeatable = false;

  bool takes_value() const { return value[0] != '\0'; }
  OptionForm form() const { return {name, letter, value, help, words, noun, repeatable}; }
};

// A program with its options, for its parser, help and completion.
struct CommandLine {
  const char* program;  // "carved"
  const char* about;
  const char* footer;
  std::vector<OptionForm> forms;

  std::string help() const;
  // Returns the script that completes the options in bash.
  std::string completion() const;

  // Stores a value of the option `forms[index]`.
  using Store = std::function<Outcome<void>(size_t index, const std::string& value)>;
  // Parses the arguments of main() and stores the values in the order of `forms`. Once `is_complete` returns
  // true after an option, the rest is ignored.
  Outcome<void> parse(int argc, char** argv, const Store& store,
                      const std::function<bool()>& is_complete) const;
};

template <class Options>
CommandLine command_line(const char* program, const char* about, const char* footer,
                         const std::vector<OptionRow<Options>>& rows) {
  CommandLine out{program, about, footer, {}};
  for (const OptionRow<Options>& row : rows) out.forms.push_back(row.form());
  return out;
}

// Prints "PROGRAM: MESSAGE" to standard error and returns the exit status: 2 for an invalid command line,
// otherwise 1.
int complain(const char* program, const Failure&);
// Prints the text of --help, --version or --completion, and returns the exit status.
int print_text(const std::string& text);

// Returns the word for a one-line message: at most 80 bytes, with '?' in place of each control character.
std::string shown(const std::string& word);
bool is_control(char);

// Returns a failure if the value of the option is not one of the words. `noun` describes the words in the
// message.
Outcome<void> known_word(const std::string& option, const std::string& value, const char* noun,
                         const std::vector<std::string_view>& words);

// Returns the path relative to the directory `from`; an empty path stays empty.
std::string absolute(const std::string& path, const std::string& from);

}  // namespace carve::os
