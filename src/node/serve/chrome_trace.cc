#include "node/serve/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "wire/api/json.h"

namespace carve::node {
namespace {

constexpr uint64_t switch_track = 0;  // No tenant has the id 0.

std::string quoted(const std::string& text) {
  return api::Json(text).dump(-1, ' ', false, api::Json::error_handler_t::replace);
}

std::string microseconds(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string named(const char* what, unsigned process, uint64_t track, const std::string& name,
                  uint64_t order) {
  return fmt::format(
      R"({{"ph":"M","name":"{}_name","pid":{},"tid":{},"args":{{"name":{}}}}},{}{{"ph":"M","name":"{}_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
      what, process, track, quoted(name), "\n", what, process, track, order);
}

}  // namespace

std::string chrome_trace(std::span<const TraceSpan> spans, const TraceNames& names, int64_t begin_ns) {
  std::vector<std::string> events;
  std::set<std::pair<unsigned, uint64_t>> tracks;
  for (const TraceNames::Device& d : names.devices)
    events.push_back(named("process", d.index, 0, fmt::format("device {}: {}", d.index, d.name), d.index));
  // On one track a span lies inside another or behind it: who waits already while his last work drains is
  // shown waiting from then on.
  std::map<std::pair<unsigned, uint64_t>, int64_t> busy_until;
  for (const TraceSpan& span : spans) {
    const auto device = std::ranges::find(names.devices, span.device, &TraceNames::Device::uuid);
    const auto tenant = names.tenants.find(span.tenant);
    int64_t from = std::max(span.begin_ns, begin_ns);
    if (device == names.devices.end() || tenant == names.tenants.end() || span.end_ns < from) continue;
    const bool switching = span.kind == SpanKind::switching;
    const uint64_t track = switching ? switch_track : span.tenant;
    int64_t& busy = busy_until.try_emplace({device->index, track}, INT64_MIN).first->second;
    if (from < busy && span.end_ns > busy) from = busy;
    busy = std::max(busy, span.end_ns);
    if (tracks.emplace(device->index, track).second)
      events.push_back(
          named("thread", device->index, track, switching ? "changes of tenants" : tenant->second, track));
    const std::string_view kind = span_words[static_cast<size_t>(span.kind)];
    events.push_back(fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{}}})",
                                 quoted(switching ? "to " + tenant->second : std::string(kind)), kind,
                                 device->index, track, microseconds(from - begin_ns),
                                 microseconds(span.end_ns - from)));
  }
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", fmt::join(events, ",\n"));
}

}  // namespace carve::node
