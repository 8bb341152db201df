// The two compressions of entries in fatbins, each with a decoder of our own, since the driver's stand-in
// carries no other library along: an LZ4 block (the format's specification calls it so: "LZ4 Block Format
// Description") and a Zstandard frame (RFC 8878). Both are as fast as a careful byte loop, about 200 MB/s,
// and read what programs hand in: whatever the bytes are, they neither read nor write beyond their ends.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace carve::sim {

// Exactly `bytes` bytes come out; false if the input does not say that.
bool decompress_lz4(std::string_view from, size_t bytes, std::string* out);
// Several frames side by side are one. Dictionaries are refused; a checksum is skipped.
bool decompress_zstd(std::string_view from, size_t bytes, std::string* out);

}  // namespace carve::sim
