// Fatbins: a header of 16 bytes {magic, version:16, header bytes:16, bytes that follow:64}, then entries:
//
//   0  kind:16 (1 PTX, 2 cubin)   8  payload bytes:64, padded     28  architecture:32 (86)
//   2  version:16                 16 compressed bytes:32          40  flags:64 (0x2000 LZ4, 0x8000 Zstandard)
//   4  header bytes:32            24 minor:16, major:16           56  bytes when decompressed:64
//
// For PTX the two numbers are its language version, and the text may lack its own .version line.
#include <algorithm>
#include <cstring>
#include <optional>

#include "sim/image/binary_image.h"
#include "sim/image/decompress.h"

namespace carve::sim {

size_t cubin_extent(const char* at);

namespace {

constexpr uint32_t magic_number = 0xba55ed50;
constexpr uint64_t max_image_bytes = 256ull << 20;  // Limit of one image, decompressed.
constexpr uint16_t ptx_kind = 1, cubin_kind = 2;
constexpr uint64_t lz4_flag = 0x2000, zstd_flag = 0x8000;

struct FatbinHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;
};
static_assert(sizeof(FatbinHeader) == 16);

struct Entry {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t payload_bytes;
  uint32_t compressed_bytes, options;
  uint16_t minor, major;
  uint32_t target, name, name_bytes;
  uint64_t flags, unused, bytes;
};
static_assert(sizeof(Entry) == 64);

struct Found {
  Entry entry;
  std::string_view payload;
};

// Returns all entries, or no value if they are inconsistent.
std::optional<std::vector<Found>> entries_of(std::string_view all) {
  FatbinHeader h;
  if (all.size() < sizeof h) return std::nullopt;
  std::memcpy(&h, all.data(), sizeof h);
  if (h.magic != magic_number || h.header_bytes < sizeof h || h.header_bytes > all.size() ||
      h.bytes > all.size() - h.header_bytes)
    return std::nullopt;
  std::string_view rest = all.substr(h.header_bytes, h.bytes);
  std::vector<Found> found;
  while (rest.size() >= sizeof(Entry)) {
    Found f;
    std::memcpy(&f.entry, rest.data(), sizeof f.entry);
    const Entry& e = f.entry;
    if (e.header_bytes < sizeof e || e.header_bytes > rest.size() ||
        e.payload_bytes > rest.size() - e.header_bytes || e.compressed_bytes > e.payload_bytes)
      return std::nullopt;
    f.payload = rest.substr(e.header_bytes, e.payload_bytes);
    rest.remove_prefix(e.header_bytes + e.payload_bytes);
    found.push_back(f);
  }
  return found;
}

bool contents(const Found& f, std::string* out) {
  const Entry& e = f.entry;
  const std::string_view compressed = f.payload.substr(0, e.compressed_bytes);
  if ((e.flags & (lz4_flag | zstd_flag)) == 0) return out->assign(f.payload), true;
  if (e.bytes > max_image_bytes) return false;
  return e.flags & lz4_flag ? decompress_lz4(compressed, e.bytes, out)
                            : decompress_zstd(compressed, e.bytes, out);
}

bool runs(const Entry& e, unsigned capability) {
  if (e.kind == cubin_kind) return e.target / 10 == capability / 10 && e.target <= capability;
  return e.kind == ptx_kind && e.target <= capability;
}

}  // namespace

ImageError parse_fatbin(std::string_view all, unsigned capability, Image* image) {
  const auto entries = entries_of(all);
  if (!entries) return ImageError::broken;
  const Found* best = nullptr;
  for (const Found& f : *entries) {
    if (!runs(f.entry, capability)) continue;
    const auto rank = [](const Found& x) { return std::pair(x.entry.kind, x.entry.target); };
    if (!best || rank(f) > rank(*best)) best = &f;
  }
  if (!best) return ImageError::no_code;
  std::string code;
  if (!contents(*best, &code)) return ImageError::broken;
  if (best->entry.kind == cubin_kind) return parse_cubin(code, capability, image);
  code.resize(std::min(code.find('\0'), code.size()));
  const ImageError e = parse_ptx(code, image);
  if (e != ImageError::not_ptx) return e;
  *image = {};
  const std::string version =
      ".version " + std::to_string(best->entry.major) + "." + std::to_string(best->entry.minor) + "\n";
  return parse_ptx(version + code, image);
}

ImageError parse_binary(std::string_view all, unsigned capability, Image* image) {
  uint32_t magic = 0;
  if (all.size() >= sizeof magic) std::memcpy(&magic, all.data(), sizeof magic);
  return magic == magic_number ? parse_fatbin(all, capability, image) : parse_cubin(all, capability, image);
}

bool is_binary(uint32_t magic) { return magic == elf_magic || magic == magic_number; }

size_t binary_extent(const void* data) {
  const auto* at = static_cast<const char*>(data);
  uint32_t magic = 0;
  std::memcpy(&magic, at, sizeof magic);
  if (magic == elf_magic) return cubin_extent(at);
  if (magic != magic_number) return 0;
  FatbinHeader h;
  std::memcpy(&h, at, sizeof h);
  return h.header_bytes + h.bytes;
}

}  // namespace carve::sim
