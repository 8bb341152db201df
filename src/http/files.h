// Serves a folder over HTTP, for example a console's static files. Each response has a content type that
// depends on the file's extension, a strong ETag made from size, inode and modification time, and a
// Cache-Control header. A file is read in pieces while it is sent (http/conversation.h).
//
//   GET, HEAD   200; 206 and 416 for one range of bytes (RFC 9110, section 14); 304 for a known ETag
//   /           index.html; a folder is not listed and is not found
//   others      405
//
// No path leads out of the folder, and symbolic links are not followed (os/beneath.h). Files and folders
// whose names start with a dot are not found.
#pragma once

#include "core/failure.h"
#include "http/message.h"

namespace carve::http {

class Files {
 public:
  // Opens the folder. Below the path `unchanging`, a file's name changes with its content, so browsers cache
  // these files forever. They revalidate other files by ETag each time.
  static Outcome<Files> open(const std::string& folder, Refuse refuse, std::string unchanging = "/assets/");

  Response answer(const Request&) const;

 private:
  Files(os::Fd folder, Refuse refuse, std::string unchanging)
      : folder_(std::move(folder)), refuse_(std::move(refuse)), unchanging_(std::move(unchanging)) {}

  os::Fd folder_;
  Refuse refuse_;
  std::string unchanging_;
};

// Returns the text with each %XX decoded to a byte, or no value if one is malformed or NUL.
std::optional<std::string> percent_decoded(std::string_view text);

// The byte range from `Range: bytes=...` for content of `size` bytes.
struct ByteRange {
  enum class Kind : uint8_t { whole, part, none };  // `none` means that the range is not satisfiable.
  Kind kind = Kind::whole;
  uint64_t offset = 0;
  uint64_t length = 0;
};
ByteRange byte_range(std::string_view header, uint64_t size);

// Returns whether the If-None-Match list contains the ETag. Weak and strong ETags are treated alike.
bool etag_matches(std::string_view list, std::string_view etag);

}  // namespace carve::http
