#include "sim/image/decompress.h"

#include <lz4.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

namespace carve::sim {
namespace {

constexpr size_t max_lz4_bytes = std::numeric_limits<int>::max();  // liblz4 counts in int.

// Allocates the output. Its size comes from a header and may be wrong, but memory that is never written is
// not committed.
std::unique_ptr<char[]> room_for(size_t bytes) {
  return std::unique_ptr<char[]>(new (std::nothrow) char[bytes]);
}

// Returns whether a frame begins here. libzstd also reads skippable frames and the formats of its versions
// before 0.8, which fatbins do not contain.
bool begins_a_frame(std::string_view from) {
  uint32_t magic = 0;
  std::memcpy(&magic, from.data(), sizeof magic);
  return magic == ZSTD_MAGICNUMBER;
}

}  // namespace

bool decompress_lz4(std::string_view from, size_t bytes, std::string* out) {
  out->clear();
  if (from.size() > max_lz4_bytes || bytes > max_lz4_bytes) return false;
  const auto room = room_for(bytes);
  if (!room) return false;
  const int written =
      LZ4_decompress_safe(from.data(), room.get(), static_cast<int>(from.size()), static_cast<int>(bytes));
  if (written < 0 || static_cast<size_t>(written) != bytes) return false;
  out->assign(room.get(), bytes);
  return true;
}

bool decompress_zstd(std::string_view from, size_t bytes, std::string* out) {
  out->clear();
  const auto room = room_for(bytes);
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> tables(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (!room || !tables) return false;
  size_t written = 0;
  while (from.size() >= sizeof(uint32_t)) {
    if (!begins_a_frame(from)) return false;
    const size_t frame = ZSTD_findFrameCompressedSize(from.data(), from.size());
    if (ZSTD_isError(frame)) return false;
    const size_t more =
        ZSTD_decompressDCtx(tables.get(), room.get() + written, bytes - written, from.data(), frame);
    if (ZSTD_isError(more)) return false;
    written += more;
    from.remove_prefix(frame);
  }
  if (!from.empty() || written != bytes) return false;
  out->assign(room.get(), bytes);
  return true;
}

}  // namespace carve::sim
