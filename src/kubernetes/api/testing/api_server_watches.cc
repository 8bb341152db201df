// The watches of the fake: selectors, bookmarks and injected faults.
#include <fmt/format.h>

#include <algorithm>

#include "kubernetes/api/testing/api_server_fake.h"

namespace carve::kubernetes {
namespace {

using json = nlohmann::json;
using FaultKind = ApiFault::Kind;

std::string event_line(const char* type, const json& object) {
  return json({{"type", type}, {"object", object}}).dump() + "\n";
}

std::string error_line(unsigned status, const char* message) {
  return event_line("ERROR",
                    {{"kind", "Status"}, {"status", "Failure"}, {"message", message}, {"code", status}});
}

std::string value_of(const ApiPath& path, const char* name) {
  const auto found = path.query.find(name);
  return found != path.query.end() ? found->second : "";
}

}  // namespace

void ApiServerFake::begin_watch(const Request& request, const ApiPath& path,
                                const std::shared_ptr<Exchange>& exchange) {
  Watch watch{.exchange = exchange,
              .collection = path.collection(),
              .name_space = path.name_space,
              .target = request.target,
              .labels = Selector(Selector::Of::labels, value_of(path, "labelSelector")),
              .fields = Selector(Selector::Of::fields, value_of(path, "fieldSelector")),
              .metadata_alone = request.accept.find("as=PartialObjectMetadata") != std::string::npos};
  exchange->begin();
  const std::string from_text = value_of(path, "resourceVersion");
  if (from_text.empty() || from_text == "0") {
    for (const json& object : all(watch.collection))
      deliver(watch, {.version = version_, .collection = watch.collection, .before = {}, .after = object});
  } else {
    const uint64_t from = std::stoull(from_text);
    if (from < oldest_kept_) {
      exchange->send(error_line(410, "too old resource version"));
      return exchange->end();
    }
    for (const Change& change : log_)
      if (change.version > from) deliver(watch, change);
  }
  if (!watch.is_over) watches_.push_back(std::move(watch));
}

// An object that no longer matches the selectors is DELETED for this watch; one that starts to match is
// ADDED.
void ApiServerFake::deliver(Watch& watch, const Change& change) {
  if (change.collection != watch.collection || watch.is_over) return;
  const auto is_selected = [&](const std::optional<Object>& object) {
    return object &&
           (watch.name_space.empty() || (*object)["metadata"].value("namespace", "") == watch.name_space) &&
           watch.labels.matches(*object) && watch.fields.matches(*object);
  };
  const bool was_in = is_selected(change.before), is_in = is_selected(change.after);
  if (!was_in && !is_in) return;
  json object = is_in ? *change.after : *change.before;
  object["metadata"]["resourceVersion"] = std::to_string(change.version);
  if (watch.metadata_alone)
    object = {{"kind", "PartialObjectMetadata"},
              {"apiVersion", "meta.k8s.io/v1"},
              {"metadata", object["metadata"]}};
  send_line(watch, event_line(!is_in ? "DELETED" : was_in ? "MODIFIED" : "ADDED", object));
}

void ApiServerFake::send_line(Watch& watch, const std::string& line) {
  const auto exchange = watch.exchange.lock();
  if (!exchange) {
    watch.is_over = true;
    return;
  }
  if (watch.is_late) return watch.held.push_back(line);
  const auto fault = take_fault(
      "WATCH", watch.target,
      {FaultKind::error_event, FaultKind::cut_line, FaultKind::close, FaultKind::duplicate, FaultKind::late});
  if (!fault) return exchange->send(line);
  switch (fault->kind) {
    case FaultKind::late: watch.is_late = true; return watch.held.push_back(line);
    case FaultKind::duplicate: return exchange->send(line + line);
    case FaultKind::cut_line:
      exchange->send(line.substr(0, line.size() / 2));
      exchange->lose();
      break;
    case FaultKind::error_event:
      exchange->send(error_line(fault->status, "injected fault"));
      exchange->end();
      break;
    default:
      exchange->send(line);
      exchange->end();
      break;
  }
  watch.is_over = true;
}

void ApiServerFake::release_late() {
  for (Watch& watch : watches_) {
    if (const auto exchange = watch.exchange.lock())
      for (const std::string& line : watch.held) exchange->send(line);
    watch.held.clear();
    watch.is_late = false;
  }
}

void ApiServerFake::send_bookmarks() {
  for (Watch& watch : watches_) {
    json meta = {{"resourceVersion", std::to_string(version_)}, {"creationTimestamp", nullptr}};
    send_line(watch, event_line("BOOKMARK", {{"kind", "Bookmark"}, {"metadata", meta}}));
  }
  std::erase_if(watches_, [](const Watch& watch) { return watch.is_over; });
}

void ApiServerFake::end_watches() {
  for (const Watch& watch : watches_)
    if (const auto exchange = watch.exchange.lock()) exchange->end();
  watches_.clear();
}

size_t ApiServerFake::watches() const {
  return static_cast<size_t>(
      std::ranges::count_if(watches_, [](const Watch& watch) { return !watch.exchange.expired(); }));
}

}  // namespace carve::kubernetes
