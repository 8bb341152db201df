// Any process that may open the API's socket can send any bytes, in parts of any size. The first byte is the
// size of the parts. A complete request is parsed as in the agent; some paths answer with a stream or with a
// range of a file. The peer also takes the responses in parts, and time passes.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "http/conversation.h"
#include "wire/api/json.h"
#include "wire/api/slice.h"

namespace {

using namespace carve;

constexpr size_t queue_bytes = 300;
constexpr size_t file_bytes = 100'000;

int file_with_bytes() {
  const int file = memfd_create("carve-fuzz", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, file_bytes) != 0) abort();
  return file;
}

http::Response answer(const http::Request& request, http::Stream*& stream) {
  if (request.body.size() > http::max_body_bytes) abort();
  if (request.headers.count("a") > http::max_headers) abort();
  if (const auto token = http::bearer_token(request.headers); token && token->empty()) abort();
  if (request.path == "/stream") {
    const std::string* last = request.headers.find("last-event-id");
    return {.content = http::EventStream{
                {{last != nullptr ? *last : "1", request.query}}, [&](http::Stream& opened) {
                  if (stream != nullptr) abort();  // A connection has one stream.
                  stream = &opened;
                  return std::shared_ptr<void>(&stream, [](http::Stream** s) { *s = nullptr; });
                }}};
  }
  if (request.path == "/file") {
    static const int file = file_with_bytes();
    return {.type = "text/plain",
            .content = http::FileRange{os::Fd(dup(file)), request.query.size(), file_bytes - 100}};
  }
  const auto document = api::read<api::SliceRequest>(request.body, api::Reading::strict);
  return {document ? 200u : 400u, "application/json", document ? api::write(*document) : document.error()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const size_t piece = data[0] % 64 + 1;
  std::string_view left(reinterpret_cast<const char*>(data) + 1, size - 1);
  http::Stream* stream = nullptr;
  int64_t now = 0;
  size_t sent = 0;
  bool queue_full = false;
  http::Conversation conversation(
      {.handle = [&](const http::Request& request) { return answer(request, stream); },
       .refuse =
           [](unsigned status, const std::string& detail) {
             return http::Response{status, "application/problem+json", detail};
           },
       .body_limit = [](std::string_view, std::string_view path) { return path.size() * 100; },
       .queue_bytes = queue_bytes},
      now);
  while (!conversation.is_over() && !left.empty()) {
    const std::string_view bytes = left.substr(0, piece);
    left.remove_prefix(bytes.size());
    conversation.receive(bytes, now);
    if (stream != nullptr) queue_full = !stream->send({"2", std::string(bytes)}) || queue_full;
    for (std::string_view out; !(out = conversation.unsent()).empty();) {
      const size_t taken = out.size() > 4 * piece ? out.size() / 2 : out.size();
      conversation.sent(taken, now);
      sent += taken;
    }
    now += 100'000'000;
    conversation.tick(now);
  }
  // A connection is closed with an answer, unless it was late or the peer did not take its events.
  const bool answered = sent > 0 || queue_full || now >= http::request_patience_ns;
  if (conversation.is_over() && !answered) abort();
  return 0;
}
