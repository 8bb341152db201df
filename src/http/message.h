// The messages of a connection: requests with their headers, and responses. The content of a response is a
// body, a range of a file, a stream of events (text/event-stream of the HTML standard, section 9.2), or an
// answer that comes later.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "os/fd.h"

namespace carve::http {

inline constexpr size_t max_headers = 64;
inline constexpr size_t max_body_bytes = 64 << 10;  // Unless the program sets another limit for a route.
inline constexpr size_t max_stream_queue_bytes = 1 << 20;  // Unless the program sets another limit.

struct Header {
  std::string name;
  std::string value;
};

// The headers of a request, in order. Names are compared case-insensitively.
class Headers {
 public:
  void add(std::string name, std::string value);
  const std::string* find(std::string_view name) const;  // The first header of this name, or null.
  size_t count(std::string_view name) const;

 private:
  std::vector<Header> all_;
};

// Returns the token of `Authorization: Bearer TOKEN` (RFC 6750). No value if the header is missing or
// repeated, has another scheme, or has characters that are invalid in a token.
std::optional<std::string_view> bearer_token(const Headers&);

// Returns why a request's header breaks the framing rules; empty if it follows them. A proxy that parsed it
// differently would see another request (RFC 9112, section 6).
std::string_view framing_problem(const Headers&, bool is_http_11);

// Returns whether a line of the header continues the line before (obs-fold; RFC 9112, section 5.2). `bytes`
// begins at a line of the header; bytes after the header's end are ignored.
bool has_folded_line(std::string_view bytes);

struct Request {
  std::string method;  // "GET"
  std::string path;    // "/v1/slices/a", without the query.
  std::string query;   // "all=true"
  std::string body;
  Headers headers = {};
};

// The bytes `offset` to `offset + length` of a regular file, read in pieces while they are sent.
struct FileRange {
  os::Fd file;
  uint64_t offset = 0;
  uint64_t length = 0;
};

struct StreamEvent {
  std::string id;  // Sent as Last-Event-ID by a client that continues after this event; no line end, no NUL.
  std::string data;       // Text of any number of lines.
  std::string type = {};  // The type that a client dispatches on ("added"); no line end. Empty for "message".
};

// The program's end of a stream. It is valid until the connection closes (EventStream::subscribe).
class Stream {
 public:
  // Queues an event. Returns false if the stream has ended. If the queue would exceed its limit, the stream
  // ends here and the connection closes: its reader has stopped reading.
  virtual bool send(const StreamEvent&) = 0;
  virtual size_t queued_bytes() const = 0;  // Bytes that the peer has not read yet.
  virtual void end() = 0;                   // Closes the connection after the queued events have been sent.

 protected:
  ~Stream() = default;
};

struct EventStream {
  std::vector<StreamEvent> first = {};  // Sent immediately; not counted against the queue's limit.
  // Called once, when the response has begun. The connection holds the returned value until it closes; the
  // destructor of that value ends the use of the stream.
  std::function<std::shared_ptr<void>(Stream&)> subscribe;
};

struct Response;

// The program's handle for a later answer. It is valid until it has answered, or the connection closes.
class LaterAnswer {
 public:
  virtual void answer(Response) = 0;  // Once; not with a stream or another LaterContent.

 protected:
  ~LaterAnswer() = default;
};

// Replaces an answer that the program does not have yet; the response's own status and headers do not count.
struct LaterContent {
  // Called once. The connection holds the returned value until it closes or has another; the destructor of
  // that value ends the use of the LaterAnswer.
  std::function<std::shared_ptr<void>(LaterAnswer&)> begin;
};

using Content = std::variant<std::string, FileRange, EventStream, LaterContent>;

struct Response {
  unsigned status = 200;
  std::string type = "application/json";
  Content content = std::string();
  std::vector<Header> headers = {};  // In addition to the type and length of the content.
  bool closes = false;               // The connection closes after it.
};

// Returns the response to a request that is rejected before it reaches the program's routes, with the status
// and a message.
using Refuse = std::function<Response(unsigned status, std::string detail)>;
// Returns the limit of a request's body in bytes. Called when the header of the request is complete.
using BodyLimit = std::function<size_t(std::string_view method, std::string_view path)>;

}  // namespace carve::http
