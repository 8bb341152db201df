#include "node/metrics/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <functional>
#include <queue>

#include "wire/api/json.h"

namespace carve::node {
namespace {

constexpr uint64_t switch_track = 0;  // No slice has the id 0.

std::string microseconds(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string named(const char* what, unsigned process, uint64_t track, const std::string& name,
                  uint64_t order) {
  return fmt::format(
      R"({{"ph":"M","name":"{}_name","pid":{},"tid":{},"args":{{"name":{}}}}},{}{{"ph":"M","name":"{}_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
      what, process, track, api::quoted(name), "\n", what, process, track, order);
}

// The spans in drawing order: by start, and for equal starts the longer one first. Viewers can draw spans of
// one track only if each is inside another one or after it. A span that outlasts another therefore begins
// when that one ends. For example, a slice that waits while its last work drains is shown as waiting from the
// end of the drain.
struct Drawn {
  int64_t from, minus_end;
  unsigned device;
  uint64_t track;
  SpanKind kind;
  const std::string* name;

  int64_t end() const { return -minus_end; }
  friend auto operator<=>(const Drawn&, const Drawn&) = default;
};

}  // namespace

std::string chrome_trace(std::span<const TraceSpan> spans, const TraceNames& names, int64_t begin_ns) {
  std::vector<std::string> events;
  for (const TraceNames::Device& d : names.devices)
    events.push_back(named("process", d.index, 0, fmt::format("device {}: {}", d.index, d.name), d.index));
  std::priority_queue<Drawn, std::vector<Drawn>, std::greater<>> coming;
  for (const TraceSpan& span : spans) {
    const auto device = std::ranges::find(names.devices, span.device, &TraceNames::Device::uuid);
    const auto slice = names.slices.find(span.slice);
    const int64_t from = std::max(span.begin_ns, begin_ns);
    if (device == names.devices.end() || slice == names.slices.end() || span.end_ns < from) continue;
    const bool switching = span.kind == SpanKind::switching;
    coming.push({from, -span.end_ns, device->index, switching ? switch_track : span.slice, span.kind,
                 &slice->second});
  }
  // For each track, the ends of the spans that may contain the next one, innermost last.
  std::map<std::pair<unsigned, uint64_t>, std::vector<int64_t>> open;
  while (!coming.empty()) {
    Drawn next = coming.top();
    coming.pop();
    const auto [at, is_new] = open.try_emplace({next.device, next.track});
    std::vector<int64_t>& ends = at->second;
    const bool switching = next.kind == SpanKind::switching;
    if (is_new)
      events.push_back(named("thread", next.device, next.track,
                             switching ? "switches between clients" : *next.name, next.track));
    while (!ends.empty() && ends.back() <= next.from) ends.pop_back();
    if (!ends.empty() && ends.back() < next.end()) {
      next.from = ends.back();
      coming.push(next);
      continue;
    }
    ends.push_back(next.end());
    const std::string_view kind = span_words[static_cast<size_t>(next.kind)];
    events.push_back(fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{}}})",
                                 api::quoted(switching ? "to " + *next.name : std::string(kind)), kind,
                                 next.device, next.track, microseconds(next.from - begin_ns),
                                 microseconds(next.end() - next.from)));
  }
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", fmt::join(events, ",\n"));
}

}  // namespace carve::node
