// Makes text from outside safe for one line of a log or a terminal. A control character could begin a forged
// line or change the terminal's output.
#pragma once

#include <string>
#include <string_view>

namespace carve {

// Returns the text with each control character (C0, DEL, C1), each character that changes the text direction
// (U+202A to U+202E, U+2066 to U+2069), U+2028 and U+2029, and each byte that is not UTF-8 replaced with
// \\xNN, one per byte. Characters in `kept` are not replaced.
std::string escaped(std::string_view text, std::string_view kept = {});

}  // namespace carve
