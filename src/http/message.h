// HTTP messages: requests with their headers, and responses. The content of a response is a body, a range of
// a file, a stream of events (text/event-stream of the HTML standard, section 9.2), or an answer that becomes
// available later.
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

// Returns the token of `Authorization: Bearer TOKEN` (RFC 6750), or no value if the header is missing or
// repeated, has another scheme, or contains characters that are invalid in a token.
std::optional<std::string_view> bearer_token(const Headers&);

// Returns why a request's header violates the framing rules. Empty if it follows them. A proxy that parsed
// such a header differently would see another request (RFC 9112, section 6).
std::string_view framing_problem(const Headers&, bool is_http_11);

// Returns whether a line of the header continues the previous line (obs-fold; RFC 9112, section 5.2). `bytes`
// must start at a line of the header; bytes after the header's end are ignored.
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
  std::string id;         // Returned by a client as Last-Event-ID; no line end, no NUL.
  std::string data;       // Text of any number of lines.
  std::string type = {};  // The type that a client dispatches on ("added"); no line end. Empty for "message".
};

// The program's end of a stream. Valid until the connection closes (EventStream::subscribe).
class Stream {
 public:
  // Queues an event. Returns false if the stream has ended. If the queue would exceed its limit, ends the
  // stream and closes the connection, because its reader has stopped reading.
  virtual bool send(const StreamEvent&) = 0;
  virtual size_t queued_bytes() const = 0;  // Number of bytes that the peer has not read yet.
  virtual void end() = 0;                   // Closes the connection after sending the queued events.

 protected:
  ~Stream() = default;
};

struct EventStream {
  std::vector<StreamEvent> first = {};  // Sent immediately; do not count against the queue's limit.
  // Called once, when the response has started. The connection holds the returned value until it closes; the
  // destructor of that value must end the use of the stream.
  std::function<std::shared_ptr<void>(Stream&)> subscribe;
};

struct Response;

// The program's handle for a later answer. Valid until it has answered or the connection closes.
class LaterAnswer {
 public:
  virtual void answer(Response) = 0;  // May be called once, and not with a stream or another LaterContent.

 protected:
  ~LaterAnswer() = default;
};

// Replaces an answer that the program does not have yet. The status and headers of the response that contains
// it are ignored.
struct LaterContent {
  // Called once. The connection holds the returned value until it closes or gets another one; the destructor
  // of that value must end the use of the LaterAnswer.
  std::function<std::shared_ptr<void>(LaterAnswer&)> begin;
};

using Content = std::variant<std::string, FileRange, EventStream, LaterContent>;

struct Response {
  unsigned status = 200;
  std::string type = "application/json";
  Content content = std::string();
  std::vector<Header> headers = {};  // In addition to the type and length of the content.
  bool closes = false;               // The connection closes after the response.
};

// Returns the response to a request that is rejected before it reaches the program's routes, from the status
// and a message.
using Refuse = std::function<Response(unsigned status, std::string detail)>;
// Returns the maximum size of a request's body in bytes. Called when the request's header is complete.
using BodyLimit = std::function<size_t(std::string_view method, std::string_view path)>;

}  // namespace carve::http
