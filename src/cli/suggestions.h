// Suggests a word for one that `carve` does not know because it is misspelt, or belongs to docker, kubectl or
// nvitop.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace carve::cli {

// Returns the candidate that differs from the word by at most two typing errors (one in a word of up to four
// letters): a letter that is missing, added, replaced, or exchanged with the next one. Empty if there is
// none, or if two candidates are equally near.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// Returns what does here what the verb or option does in another program; empty if unknown. For options,
// `word` begins with '-'.
std::string_view equivalent_of(std::string_view word);

// Returns the error message for a word that is not a kind of object, with the kinds.
std::string unknown_kind(const std::string& word);

}  // namespace carve::cli
