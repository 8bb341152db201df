// A folder served over HTTP, for example a console's static files. Each response has a type by the name's
// ending, a strong ETag of size, inode and modification time, and Cache-Control. A file is read in pieces
// while it is sent (http/conversation.h).
//
//   GET, HEAD   200; 206 and 416 for one range of bytes (RFC 9110, section 14); 304 for a known ETag
//   /           index.html; a folder is not listed and is not found
//   others      405
//
// No path leads out of the folder, and symbolic links are not followed (os/beneath.h). A file or folder whose
// name begins with a dot is not found.
#pragma once

#include "core/failure.h"
#include "http/message.h"

namespace carve::http {

class Files {
 public:
  // Below the path `unchanging`, a file's name changes with its content, so browsers cache these files
  // forever. They revalidate other files by their ETag each time.
  static Outcome<Files> open(const std::string& folder, Refuse refuse, std::string unchanging = "/assets/");

  Response answer(const Request&) const;

 private:
  Files(os::Fd folder, Refuse refuse, std::string unchanging)
      : folder_(std::move(folder)), refuse_(std::move(refuse)), unchanging_(std::move(unchanging)) {}

  os::Fd folder_;
  Refuse refuse_;
  std::string unchanging_;
};

// Returns the text with its %XX decoded to bytes; no value if one is malformed or is a NUL.
std::optional<std::string> percent_decoded(std::string_view text);

// A range of bytes from `Range: bytes=...`, for content of `size` bytes.
struct ByteRange {
  enum class Kind : uint8_t { whole, part, none };  // No usable range; satisfiable; not satisfiable.
  Kind kind = Kind::whole;
  uint64_t offset = 0;
  uint64_t length = 0;
};
ByteRange byte_range(std::string_view header, uint64_t size);

// Returns whether the list of If-None-Match has the ETag. Weak and strong ETags are equal here.
bool etag_matches(std::string_view list, std::string_view etag);

}  // namespace carve::http
