#include "node/devices/kernel_log.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace carve::node {
namespace {

constexpr size_t max_line_bytes = 8192;  // The kernel's limit for a record.
constexpr int max_reads = 1024;
constexpr size_t max_bytes = 64 << 10;
constexpr size_t max_name_characters = 64;

// Removes a number from the front of `text`. Returns false if there is none or it is too large.
template <class Number>
bool take_number(std::string_view& text, Number& out, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

bool take_address(std::string_view& text, PciAddress& out) {
  return take_number(text, out.domain, 16) && take(text, ":") && take_number(text, out.bus, 16) &&
         take(text, ":") && take_number(text, out.device, 16);
}

}  // namespace

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  PciAddress out;
  if (!take_address(text, out)) return std::nullopt;
  uint32_t function = 0;
  if (take(text, ".") && !take_number(text, function, 16)) return std::nullopt;
  return text.empty() ? std::optional(out) : std::nullopt;
}

std::optional<XidRecord> parse_xid(std::string_view line) {
  constexpr std::string_view head = "NVRM: Xid (PCI:";
  // The prefix of a line in /dev/kmsg ends with its only semicolon. A time in brackets may follow.
  const size_t at = line.find(head);
  if (at == std::string_view::npos || line.substr(0, at).find("NVRM") != std::string_view::npos)
    return std::nullopt;
  line.remove_prefix(at + head.size());
  XidRecord out;
  if (!take_address(line, out.device) || !take(line, "): ") || !take_number(line, out.code))
    return std::nullopt;
  // Some releases of the driver quote the process id.
  if (!take(line, ", pid=")) return out;
  take(line, "'");
  pid_t pid = 0;
  if (!take_number(line, pid) || pid <= 0) return out;
  out.pid = pid;
  take(line, "'");
  if (!take(line, ", name=")) return out;
  out.process = line.substr(0, std::min(line.find(','), max_name_characters));
  std::ranges::replace_if(
      out.process, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

Outcome<KernelLog> KernelLog::open(const std::string& path) {
  os::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd || lseek(fd.get(), 0, SEEK_END) < 0)
    return failure(errno == ENOENT ? FailureKind::not_found : FailureKind::permission_denied,
                   "{} cannot be read: {}", path, strerror(errno));
  return KernelLog(std::move(fd));
}

std::vector<XidRecord> KernelLog::read() {
  std::vector<XidRecord> out;
  std::array<char, max_line_bytes> bytes{};
  size_t total = 0;
  for (int reads = 0; reads < max_reads && total < max_bytes; ++reads) {
    // /dev/kmsg returns one record per call, or EPIPE if records were overwritten before they were read.
    const ssize_t count = ::read(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (count <= 0) break;
    total += static_cast<size_t>(count);
    for (const char c : std::string_view(bytes.data(), static_cast<size_t>(count))) {
      if (c != '\n') {
        if (line_.size() < max_line_bytes) line_ += c;
        continue;
      }
      // A line that begins with a space has properties of the previous record.
      if (!line_.starts_with(' '))
        if (auto record = parse_xid(line_)) out.push_back(std::move(*record));
      line_.clear();
    }
  }
  return out;
}

}  // namespace carve::node
