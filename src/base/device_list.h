// Parses CUDA_VISIBLE_DEVICES as NVIDIA's driver does. The rules were found with libcuda 525, 535 and 550,
// which agree; the table is in tests/nvidia.
//
// The list is split at commas and ends at the first word that names no device. If the list begins with
// "GPU-", its words are UUIDs: "GPU-" in capitals, then hexadecimal digits of either case. Dashes after the
// first digit and the rest of a word after its digits are ignored. One digit is sufficient if only one
// device's UUID begins with it. Otherwise the words are numbers as strtoul reads them, truncated to 32 bits,
// so that "+1", "01" and "1.5" name device 1 and "0x1" names device 0. If a device is named twice, the driver
// fails.
//
// Freestanding, because the guest library reads the list inside a user's process.
#pragma once

#include <cstdint>

namespace carve {

struct DeviceList {
  static constexpr unsigned max_devices = 64;
  unsigned count = 0;
  bool names_one_twice = false;  // The last entry is the repetition.
  uint8_t devices[max_devices + 1];
};

namespace device_list {

constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr bool is_uuid(const char* word) {
  return word[0] == 'G' && word[1] == 'P' && word[2] == 'U' && word[3] == '-';
}

// Returns `count` if the word is not a number.
constexpr unsigned numbered(const char* word, unsigned count) {
  while (is_space(*word)) ++word;
  const bool is_negative = *word == '-';
  if (*word == '-' || *word == '+') ++word;
  if (*word < '0' || *word > '9') return count;
  uint64_t value = 0;
  bool is_too_large = false;
  for (; *word >= '0' && *word <= '9'; ++word) {
    const auto digit = static_cast<unsigned>(*word - '0');
    is_too_large |= value > (UINT64_MAX - digit) / 10;
    value = value * 10 + digit;
  }
  if (is_too_large) return count;
  const auto cut = static_cast<uint32_t>(is_negative ? -value : value);
  return cut < count ? cut : count;
}

// Returns whether the device's UUID begins with the digits of the word.
constexpr bool begins_with(const uint8_t* uuid, const char* word) {
  unsigned digits = 0;
  for (word += 4; digits < 32; ++word) {
    if (*word == '-' && digits > 0) continue;
    const int digit = hex_digit(*word);
    if (digit < 0) break;
    const int here = digits % 2 == 0 ? uuid[digits / 2] >> 4 : uuid[digits / 2] & 15;
    if (digit != here) return false;
    ++digits;
  }
  return digits > 0;
}

}  // namespace device_list

// `uuid_of(i)` returns the 16 bytes of device i of `count`.
template <class UuidOf>
constexpr DeviceList read_device_list(const char* list, unsigned count, UuidOf uuid_of) {
  DeviceList out;
  if (count > DeviceList::max_devices) count = DeviceList::max_devices;
  const bool by_uuid = device_list::is_uuid(list);
  for (const char* word = list;; ++word) {
    unsigned found = count;
    if (!by_uuid) {
      found = device_list::numbered(word, count);
    } else if (device_list::is_uuid(word)) {
      unsigned fitting = 0;
      for (unsigned i = 0; i < count; ++i)
        if (device_list::begins_with(uuid_of(i), word)) found = ++fitting == 1 ? i : count;
    }
    if (found == count) return out;
    for (unsigned i = 0; i < out.count; ++i) out.names_one_twice |= out.devices[i] == found;
    out.devices[out.count++] = static_cast<uint8_t>(found);
    while (*word != 0 && *word != ',') ++word;
    if (out.names_one_twice || *word == 0) return out;
  }
}

}  // namespace carve
