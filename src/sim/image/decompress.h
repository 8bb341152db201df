// The two compressions of entries in fatbins: an LZ4 block and Zstandard frames (RFC 8878), read by liblz4
// and libzstd, which are linked statically. A program may pass any bytes, and no access goes beyond the ends
// of the input or the output. Memory is limited to `bytes` bytes of output and 94 KiB of libzstd's tables;
// unwritten pages of the output take no memory. Dictionaries are rejected.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace carve::sim {

// Writes exactly `bytes` bytes to `out`; returns false if the block has another length. The format forbids a
// distance of 0, for which liblz4 1.9.4 writes zeros.
bool decompress_lz4(std::string_view from, size_t bytes, std::string* out);
// Joins the contents of consecutive frames. Returns false if a checksum is wrong.
bool decompress_zstd(std::string_view from, size_t bytes, std::string* out);

}  // namespace carve::sim
