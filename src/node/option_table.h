// The table of carved's options. The help, the parsing and the completion read it (options.cc).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node/options.h"

namespace carve::node {

struct OptionRow {
  const char* name;         // "--state"
  const char* letter = "";  // "-h"
  const char* value = "";   // Name of the value in the help; empty: the option takes no value.
  const char* help = "";
  // Stores a value. Returns a failure if the value breaks a rule.
  Outcome<void> (*store)(Options&, const std::string& value) = nullptr;
  std::vector<std::string_view> words = {};  // Allowed values; empty: any.
  const char* noun = "";                     // What the words are: "an action".
  bool repeatable = false;

  bool takes_value() const { return value[0] != '\0'; }
};

// The options that start no agent come first: if one of them is given, the rest of the line does not matter.
extern const std::vector<OptionRow> option_rows;

// Returns the word for a sentence of one line: at most 80 bytes, with '?' for each control character.
std::string shown(const std::string& word);
bool is_control(char);

// Returns a failure if the value of the option is not one of the words. `noun` is what the words are.
Outcome<void> known_word(const std::string& option, const std::string& value, const char* noun,
                         const std::vector<std::string_view>& words);

}  // namespace carve::node
