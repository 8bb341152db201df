// Parses a stream of events (text/event-stream of the HTML standard, section 9.2.6) from bytes in pieces of
// any size.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace carve::client {

inline constexpr size_t max_event_bytes = 1 << 20;

struct StreamEvent {
  std::string id;    // The last id in the stream so far, because an event may have no id of its own.
  std::string data;  // The lines of its data, joined with LF.
  std::string type;  // "added"; empty for "message".
};

class EventStreamReader {
 public:
  using Act = std::function<void(const StreamEvent&)>;
  // Calls `act` for each complete event. Returns false if an event exceeds max_event_bytes.
  bool read(std::string_view bytes, const Act& act);

 private:
  void take_line(std::string_view line, const Act& act);

  std::string line_;  // The current line, without its end.
  bool after_cr_ = false;
  StreamEvent event_;
  bool has_data_ = false;
};

}  // namespace carve::client
