#include "kubernetes/api/list_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/invariant.h"

namespace carve::kubernetes {
namespace {

constexpr unsigned gone = 410;

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
        std::string_view("-._~").find(c) != std::string_view::npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

ListWatch::ListWatch(Selection selection, Sink sink, uint64_t seed)
    : selection_(std::move(selection)), sink_(std::move(sink)), random_(seed) {}

std::string ListWatch::target(std::string query) const {
  if (!selection_.label_selector.empty())
    query += "&labelSelector=" + percent_encoded(selection_.label_selector);
  if (!selection_.field_selector.empty())
    query += "&fieldSelector=" + percent_encoded(selection_.field_selector);
  return selection_.path + "?" + query;
}

std::optional<ListWatch::Request> ListWatch::next(Nanoseconds now) {
  if (is_busy_ || now < wake_at_) return std::nullopt;
  invariant(next_ == Next::list || (is_complete_ && continue_.empty()), "a watch follows a complete list");
  is_busy_ = true;
  wake_at_ = now + silence_ns;
  has_line_ = false;
  if (next_ == Next::watch) {
    std::uniform_int_distribution<unsigned> seconds(min_watch_seconds, max_watch_seconds);
    return Request{.target = target(
                       fmt::format("watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}",
                                   seconds(random_), percent_encoded(version_))),
                   .is_watch = true};
  }
  if (continue_.empty()) {
    collected_.clear();
    ++lists_;
  }
  std::string query = fmt::format("limit={}", page_items);
  if (!continue_.empty()) query += "&continue=" + percent_encoded(continue_);
  return Request{.target = target(std::move(query)), .is_watch = false};
}

void ListWatch::list_answered(std::string_view body, Nanoseconds now) {
  if (!is_busy_ || next_ != Next::list) return;
  auto page = read_list_page(body, selection_.keys);
  if (!page) {
    problem_ = page.error();
    list_again();
    return wait(now, 0);
  }
  if (selection_.keeps_documents) keep_documents(body, *page);
  for (ObjectMeta& item : page->items) collected_.insert_or_assign(item.uid, std::move(item));
  is_busy_ = false;
  wake_at_ = now;
  retry_ns_ = first_retry_ns;
  problem_.clear();
  continue_ = page->next;
  if (!continue_.empty()) return;
  version_ = page->resource_version;
  is_complete_ = true;
  next_ = Next::watch;
  sink_.replaced(std::exchange(collected_, {}));
}

void ListWatch::watch_line(std::string_view line, Nanoseconds now) {
  if (!is_busy_ || next_ != Next::watch) return;  // A line after an error.
  wake_at_ = now + silence_ns;
  auto event = read_watch_event(line, selection_.keys);
  if (!event) {
    problem_ = event.error();
    list_again();  // The line was unreadable, so the copy may be wrong.
    return wait(now, 0);
  }
  if (event->type == WatchEvent::Type::error) return failed(event->code, 0, now);
  retry_ns_ = first_retry_ns;
  problem_.clear();
  has_line_ = true;
  version_ = event->object.resource_version;
  if (selection_.keeps_documents) keep_document(line, *event);
  take(*event);
}

void ListWatch::take(const WatchEvent& event) {
  const ObjectMeta& object = event.object;
  if (event.type == WatchEvent::Type::bookmark) return;
  if (event.type == WatchEvent::Type::deleted) return sink_.removed(object);
  sink_.changed(object);
}

void ListWatch::ended(Nanoseconds now) {
  if (!is_busy_) return;  // Already abandoned.
  if (!has_line_) return wait(now, 0);
  is_busy_ = false;
  wake_at_ = now;
}

void ListWatch::failed(unsigned status, unsigned retry_after_seconds, Nanoseconds now) {
  if (!is_busy_) return;
  problem_ = status == 0 ? std::string("no answer") : fmt::format("status {}", status);
  // The server no longer has this version, or the list that was being read has expired.
  if (status == gone) list_again();
  wait(now, retry_after_seconds);
}

void ListWatch::list_again() {
  next_ = Next::list;
  continue_.clear();
}

void ListWatch::wait(Nanoseconds now, unsigned retry_after_seconds) {
  is_busy_ = false;
  std::uniform_int_distribution<Nanoseconds> random(0, retry_ns_);
  const Nanoseconds reported = retry_after_seconds * second_ns;
  wake_at_ = now + std::max(random(random_), std::min(reported, max_retry_ns));
  retry_ns_ = std::min(2 * retry_ns_, max_retry_ns);
  invariant(wake_at_ >= now && wake_at_ <= now + max_retry_ns, "retries are at random times");
}

}  // namespace carve::kubernetes
