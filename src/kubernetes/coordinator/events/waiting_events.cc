#include "kubernetes/coordinator/events/waiting_events.h"

#include <fmt/format.h>

#include <algorithm>

#include "os/log.h"
#include "wire/api/json.h"

namespace carve::kubernetes::coordinator {
namespace {

// Returns the time in RFC 3339 with microseconds, the format of MicroTime.
std::string micro_time(int64_t utc_ns) {
  const time_t seconds = utc_ns / 1'000'000'000;
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32] = "";
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:06}Z", text, utc_ns % 1'000'000'000 / 1000);
}

// Cuts the text between two UTF-8 characters.
std::string cut(std::string text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  text.resize(bytes);
  return text;
}

std::string namespace_of(const kubernetes::ObjectMeta& about) {
  return about.name_space.empty() ? "default" : about.name_space;
}

// Returns a prefix to which the API server appends five letters; the result must be a name (RFC 1123) of at
// most 253 bytes.
std::string name_prefix(const std::string& name) {
  constexpr size_t max_prefix_bytes = 200;
  std::string out = name.substr(0, max_prefix_bytes);
  while (out.ends_with('.') || out.ends_with('-')) out.pop_back();
  return out + "-";
}

}  // namespace

bool WaitingEvents::may_be_due(const std::string& uid, kubernetes::Nanoseconds now) const {
  const auto last = last_.find(uid);
  return last == last_.end() || now >= last->second.at + event_interval_ns;
}

bool WaitingEvents::is_due(const std::string& uid, const std::string& message, kubernetes::Nanoseconds now) {
  const auto [last, is_new] = last_.try_emplace(uid, Last{message, now});
  if (!is_new) {
    if (last->second.message == message || !may_be_due(uid, now)) return false;
    last->second = {message, now};
  } else if (last_.size() > max_pods) {
    last_.erase(std::ranges::min_element(last_, {}, [](const auto& entry) { return entry.second.at; }));
  }
  return true;
}

std::string event_body(const kubernetes::ObjectMeta& about, const std::string& note, const EventForm& form) {
  const auto quoted = [](const std::string& text) { return api::quoted(text); };
  const std::string name_space =
      about.name_space.empty() ? "" : fmt::format(R"("namespace":{},)", quoted(about.name_space));
  return fmt::format(
      R"({{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{{"generateName":{},"namespace":{}}},)"
      R"("eventTime":"{}","reportingController":"carve.dev/coordinator","reportingInstance":{},)"
      R"("action":{},"reason":{},"type":"{}","regarding":{{"apiVersion":"v1","kind":"{}","name":{},)"
      R"({}"uid":{}}},"note":{}}})",
      quoted(name_prefix(about.name)), quoted(namespace_of(about)), micro_time(form.at_utc_ns),
      quoted(form.instance), quoted(form.action), quoted(form.reason), form.is_warning ? "Warning" : "Normal",
      form.kind, quoted(about.name), name_space, quoted(about.uid), quoted(cut(note, max_note_bytes)));
}

void EventWriter::waits(const kubernetes::ObjectMeta& pod, const std::function<std::string()>& why) {
  const kubernetes::Nanoseconds now = client_.now();
  if (pod.name_space.empty() || writes_.size() >= max_writes || !rule_.may_be_due(pod.uid, now)) return;
  const std::string message = why();
  if (!rule_.is_due(pod.uid, message, now)) return;
  write(pod, {.reason = "CarveInsufficientCapacity", .action = "Scheduling", .message = message});
}

void EventWriter::write(const kubernetes::ObjectMeta& about, const Note& note, std::function<void()> ended) {
  const uint64_t number = next_++;
  writes_[number] =
      client_.send({.method = "POST",
                    .target = fmt::format("/apis/events.k8s.io/v1/namespaces/{}/events", namespace_of(about)),
                    .body = event_body(about, note.message,
                                       {.kind = note.kind,
                                        .is_warning = note.is_warning,
                                        .reason = note.reason,
                                        .action = note.action,
                                        .instance = instance_,
                                        .at_utc_ns = utc_ns_()})},
                   [this, number, ended = std::move(ended)](const kubernetes::ApiAnswer& answer) {
                     if (!answer.is_success()) os::log::warning("cannot write an event: {}", answer.problem);
                     const auto call = writes_.extract(number);
                     if (ended) ended();
                   });
}

}  // namespace carve::kubernetes::coordinator
