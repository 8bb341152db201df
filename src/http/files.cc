#include "http/files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "os/beneath.h"

namespace carve::http {
namespace {

constexpr struct {
  std::string_view ending, type;
} types[] = {
    {".css", "text/css; charset=utf-8"},
    {".csv", "text/csv; charset=utf-8"},
    {".gif", "image/gif"},
    {".html", "text/html; charset=utf-8"},
    {".ico", "image/x-icon"},
    {".jpg", "image/jpeg"},
    {".js", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".map", "application/json"},
    {".md", "text/markdown; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".png", "image/png"},
    {".svg", "image/svg+xml"},
    {".txt", "text/plain; charset=utf-8"},
    {".wasm", "application/wasm"},
    {".webmanifest", "application/manifest+json"},
    {".webp", "image/webp"},
    {".woff2", "font/woff2"},
    {".yaml", "application/yaml"},
};

std::string type_of(std::string_view path) {
  for (const auto& known : types)
    if (path.ends_with(known.ending)) return std::string(known.type);
  return "application/octet-stream";
}

// Rejects components that are empty or start with a dot, including "." and "..".
bool is_servable(std::string_view path) {
  return !path.empty() && path[0] == '/' && path.find("//") == std::string_view::npos &&
         path.find("/.") == std::string_view::npos && !path.ends_with('/');
}

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (c == '\0') return std::nullopt;
    out += c;
  }
  return out;
}

ByteRange byte_range(std::string_view header, uint64_t size) {
  using Kind = ByteRange::Kind;
  constexpr std::string_view unit = "bytes=";
  if (!header.starts_with(unit)) return {};
  const std::string_view set = trimmed(header.substr(unit.size()));
  const size_t dash = set.find('-');
  if (dash == std::string_view::npos) return {};
  const std::string_view from = trimmed(set.substr(0, dash)), to = trimmed(set.substr(dash + 1));
  if (from.empty()) {  // The last bytes of the file.
    const auto last = number(to);
    if (!last) return {};  // Also for several ranges, which a server may ignore.
    if (*last == 0 || size == 0) return {Kind::none};
    const uint64_t length = std::min(*last, size);
    return {Kind::part, size - length, length};
  }
  const auto begin = number(from);
  const auto end = to.empty() ? std::optional<uint64_t>(UINT64_MAX) : number(to);
  if (!begin || !end || *end < *begin) return {};
  if (*begin >= size) return {Kind::none};
  return {Kind::part, *begin, std::min(*end, size - 1) - *begin + 1};
}

bool etag_matches(std::string_view list, std::string_view etag) {
  if (trimmed(list) == "*") return true;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());  // Carve's ETags contain no comma.
    std::string_view one = trimmed(list.substr(0, comma));
    if (one.starts_with("W/")) one.remove_prefix(2);
    if (one == etag) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

Outcome<Files> Files::open(const std::string& folder, Refuse refuse, std::string unchanging) {
  os::Fd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return failure(FailureKind::not_found, "cannot serve the folder {}: {}", folder, strerror(errno));
  return Files(std::move(fd), std::move(refuse), std::move(unchanging));
}

Response Files::answer(const Request& request) const {
  if (request.method != "GET" && request.method != "HEAD") {
    Response refusal = refuse_(405, "files support only the methods GET and HEAD");
    refusal.headers.push_back({"Allow", "GET, HEAD"});
    return refusal;
  }
  auto path = percent_decoded(request.path);
  if (path == "/") path = "/index.html";
  struct stat info {};
  os::Fd file;
  if (path && is_servable(*path)) file = os::open_beneath(folder_.get(), path->substr(1));
  if (!file || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return refuse_(404, fmt::format("there is no file {}", request.path.substr(0, 80)));

  const auto size = static_cast<uint64_t>(info.st_size);
  const std::string etag = fmt::format("\"{:x}-{:x}-{:x}\"", size, info.st_ino,
                                       info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec);
  Response out{.type = type_of(*path)};
  const bool unchanging = !unchanging_.empty() && path->starts_with(unchanging_);
  out.headers = {{"ETag", etag},
                 {"Cache-Control", unchanging ? "public, max-age=31536000, immutable" : "no-cache"},
                 {"X-Content-Type-Options", "nosniff"}};
  if (const std::string* known = request.headers.find("If-None-Match"); known && etag_matches(*known, etag)) {
    out.status = 304;
    return out;
  }
  out.headers.push_back({"Accept-Ranges", "bytes"});
  ByteRange range;
  const std::string* const asked = request.headers.find("Range");
  const std::string* const only_if = request.headers.find("If-Range");
  if (asked != nullptr && request.method == "GET" && (only_if == nullptr || *only_if == etag))
    range = byte_range(*asked, size);
  if (range.kind == ByteRange::Kind::none) {
    Response refusal = refuse_(416, fmt::format("the file has {} bytes", size));
    refusal.headers.push_back({"Content-Range", fmt::format("bytes */{}", size)});
    return refusal;
  }
  if (range.kind == ByteRange::Kind::whole) {
    out.content = FileRange{std::move(file), 0, size};
    return out;
  }
  out.status = 206;
  out.headers.push_back(
      {"Content-Range", fmt::format("bytes {}-{}/{}", range.offset, range.offset + range.length - 1, size)});
  out.content = FileRange{std::move(file), range.offset, range.length};
  return out;
}

}  // namespace carve::http
