#include "core/device.h"

namespace carve {
namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::string_view pattern = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

}  // namespace

Result<Uuid> parse_uuid(std::string_view text) {
  const auto wrong = failed("the text is not a device's UUID; `carve devices` lists the UUIDs");
  if (text.size() != pattern.size()) return wrong;
  Uuid uuid;
  unsigned nibbles = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (pattern[i] != 'x') {
      if (text[i] != pattern[i]) return wrong;
      continue;
    }
    const int value = digit(text[i]);
    if (value < 0) return wrong;
    uint8_t& byte = uuid.bytes[nibbles++ / 2];
    byte = static_cast<uint8_t>(byte << 4 | value);
  }
  return uuid;
}

std::string text(const Uuid& uuid) {
  std::string out(pattern);
  unsigned nibbles = 0;
  for (char& c : out) {
    if (c != 'x') continue;
    const uint8_t byte = uuid.bytes[nibbles / 2];
    c = "0123456789abcdef"[nibbles++ % 2 == 0 ? byte >> 4 : byte & 15];
  }
  return out;
}

}  // namespace carve
