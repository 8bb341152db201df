#include "client/event_stream.h"

namespace carve::client {

bool EventStreamReader::read(std::string_view bytes, const Act& act) {
  for (const char c : bytes) {
    const bool rest_of_end = after_cr_ && c == '\n';
    after_cr_ = c == '\r';
    if (rest_of_end) continue;
    if (c != '\r' && c != '\n') {
      line_ += c;
      if (line_.size() + event_.data.size() > max_event_bytes) return false;
      continue;
    }
    take_line(line_, act);
    line_.clear();
  }
  return true;
}

void EventStreamReader::take_line(std::string_view line, const Act& act) {
  if (line.empty()) {
    if (has_data_) act(event_);
    event_.data.clear();
    event_.type.clear();
    has_data_ = false;
    return;
  }
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string_view field = line.substr(0, colon);
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  } else if (field == "event") {
    event_.type = value;
  } else if (field == "id" && value.find('\0') == std::string_view::npos) {
    event_.id = value;
  }
}

}  // namespace carve::client
