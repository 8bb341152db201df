#include "kubernetes/node/rules/slice_events.h"

#include "wire/api/json_value.h"

namespace carve::kubernetes::node {
namespace {

std::string namespace_of(const EventNote& note) {
  return note.about.name_space.empty() ? "default" : note.about.name_space;
}

// Returns the time in RFC 3339 with six decimals, the format of MicroTime.
std::string micro_time(int64_t utc_ns) {
  const time_t seconds = static_cast<time_t>(utc_ns / 1'000'000'000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char date[32];
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:06}Z", date, utc_ns % 1'000'000'000 / 1000);
}

// Cuts the text between two UTF-8 characters.
std::string cut(std::string text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text;
}

}  // namespace

std::string event_document(const EventNote& note, const std::string& node, int64_t utc_ns, uint64_t number) {
  const AboutObject& about = note.about;
  api::Json regarding = {
      {"apiVersion", "v1"}, {"kind", about.kind}, {"name", about.name}, {"uid", about.uid}};
  if (!about.name_space.empty()) regarding["namespace"] = about.name_space;
  const api::Json document = {
      {"apiVersion", "events.k8s.io/v1"},
      {"kind", "Event"},
      {"metadata",
       {{"name", fmt::format("{}.{:x}.{:x}", about.name.substr(0, 200), utc_ns, number)},
        {"namespace", namespace_of(note)}}},
      {"eventTime", micro_time(utc_ns)},
      {"reportingController", "carve.dev/kubelet"},
      {"reportingInstance", cut("carve-kubelet-" + node, 128)},
      {"action", note.action},
      {"reason", note.reason},
      {"type", note.severity == Severity::normal ? "Normal" : "Warning"},
      {"regarding", regarding},
      {"note", cut(note.note, max_note_bytes)}};
  return document.dump(-1, ' ', false, api::Json::error_handler_t::replace);
}

std::string event_target(const EventNote& note) {
  return fmt::format("/apis/events.k8s.io/v1/namespaces/{}/events", namespace_of(note));
}

}  // namespace carve::kubernetes::node
