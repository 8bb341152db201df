#include "kubernetes/api/watched_objects.h"

#include <algorithm>

namespace carve::kubernetes {

ObjectWatch::ObjectWatch(ApiClient& client, Selection selection, ListWatch::Sink sink, uint64_t seed)
    : client_(client),
      is_whole_(selection.is_whole),
      list_watch_(std::move(selection), std::move(sink), seed) {
  step();
}

void ObjectWatch::step() {
  if (const auto request = list_watch_.next(client_.now())) begin(*request);
  arm();
}

void ObjectWatch::begin(const ListWatch::Request& request) {
  ApiRequest out{.target = request.target,
                 .accept = is_whole_          ? json_type
                           : request.is_watch ? metadata_object
                                              : metadata_list};
  if (!request.is_watch) {
    call_ = client_.send(std::move(out), [this](const ApiAnswer& answer) { list_answered(answer); });
    return;
  }
  out.deadline_ns = 0;
  call_ = client_.watch(std::move(out), {.line =
                                             [this](std::string_view line) {
                                               heard_at_ = client_.now();
                                               problem_.clear();
                                               list_watch_.watch_line(line, heard_at_);
                                               if (!list_watch_.problem().empty())
                                                 problem_ = list_watch_.problem();
                                               step();
                                             },
                                         .ended = [this](const ApiAnswer& answer) { watch_ended(answer); }});
}

void ObjectWatch::list_answered(const ApiAnswer& answer) {
  call_.reset();
  const Nanoseconds now = client_.now();
  if (answer.status == 200) {
    heard_at_ = now;
    list_watch_.list_answered(answer.body, now);
    problem_ = list_watch_.problem();
  } else {
    problem_ = answer.problem;
    list_watch_.failed(answer.status, answer.retry_after_seconds, now);
  }
  step();
}

void ObjectWatch::watch_ended(const ApiAnswer& answer) {
  call_.reset();
  if (answer.status == 200) {
    list_watch_.ended(client_.now());
  } else {
    problem_ = answer.problem;
    list_watch_.failed(answer.status, answer.retry_after_seconds, client_.now());
  }
  step();
}

// Each line postpones wake_at(). A timer that is already set is kept until it fires.
void ObjectWatch::arm() {
  const Nanoseconds at = list_watch_.wake_at();
  if (timer_ && timer_at_ <= at) return;
  timer_at_ = at;
  timer_ = client_.after(std::max<Nanoseconds>(at - client_.now(), 0), [this] { wake(); });
}

void ObjectWatch::wake() {
  timer_.reset();
  const Nanoseconds now = client_.now();
  if (call_ && now >= list_watch_.wake_at()) {
    problem_ = "no response and no event for 90 s";
    call_->distrust_connection();
    call_.reset();
    list_watch_.failed(0, 0, now);
  }
  step();
}

WatchedObjects::WatchedObjects(ApiClient& client, Selection selection, Sink sink, uint64_t seed)
    : ObjectWatch(client, std::move(selection), copying(std::move(sink)), seed) {}

ListWatch::Sink WatchedObjects::copying(Sink sink) {
  return {.replaced =
              [this, reported = std::move(sink.replaced)](ObjectsByUid all) {
                by_uid_ = std::move(all);
                reported();
              },
          .changed =
              [this, reported = std::move(sink.changed)](const ObjectMeta& object) {
                by_uid_.insert_or_assign(object.uid, object);
                reported(object);
              },
          .removed =
              [this, reported = std::move(sink.removed)](const ObjectMeta& object) {
                by_uid_.erase(object.uid);
                reported(object);
              }};
}

}  // namespace carve::kubernetes
