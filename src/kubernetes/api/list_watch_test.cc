#include "kubernetes/api/list_watch.h"

#include <gmock/gmock.h>

#include "kubernetes/api/testing/api_server_model.h"

namespace carve::kubernetes {
namespace {

using testing::HasSubstr;

// A copy built only from the sink's calls.
struct Copy {
  std::map<std::string, ObjectMeta> objects;
  unsigned replaced = 0;

  ListWatch::Sink sink() {
    return {.replaced =
                [this](const auto& all) {
                  objects = all;
                  ++replaced;
                },
            .changed = [this](const ObjectMeta& object) { objects.insert_or_assign(object.uid, object); },
            .removed = [this](const ObjectMeta& object) { objects.erase(object.uid); }};
  }
};

TEST(ListWatch, lists_in_pages_and_then_watches_from_the_lists_version) {
  ApiServerModel server;
  for (const char* name : {"a", "b", "c"}) server.put(name);
  Copy copy;
  ListWatch watch({.path = "/api/v1/pods", .label_selector = "carve.dev/sliced=true", .field_selector = ""},
                  copy.sink(), 1);
  auto request = watch.next(0);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->target, "/api/v1/pods?limit=500&labelSelector=carve.dev%2Fsliced%3Dtrue");
  EXPECT_FALSE(watch.next(0)) << "one request at a time";
  watch.list_answered(*server.list(request->target, 2), 1);
  EXPECT_FALSE(watch.is_complete());
  request = watch.next(1);
  EXPECT_THAT(request->target, HasSubstr("&continue="));
  watch.list_answered(*server.list(request->target, 2), 2);
  EXPECT_TRUE(watch.is_complete());
  EXPECT_EQ(copy.objects.size(), 3u);
  request = watch.next(2);
  ASSERT_TRUE(request && request->is_watch);
  EXPECT_THAT(request->target, HasSubstr("watch=true&allowWatchBookmarks=true&timeoutSeconds="));
  EXPECT_THAT(request->target, HasSubstr("&resourceVersion=4"));
  server.remove("b");
  const auto lines = server.watch(4);
  for (const std::string& line : *lines) watch.watch_line(line, 3);
  EXPECT_FALSE(copy.objects.contains("b"));
  watch.watch_line(server.bookmark(), 4);
  watch.ended(5);
  EXPECT_THAT(watch.next(5)->target, HasSubstr("resourceVersion=5")) << "the bookmark's version";
}

TEST(ListWatch, lists_again_when_the_version_is_gone) {
  ApiServerModel server;
  server.put("a");
  Copy copy;
  ListWatch watch({.path = "/p", .label_selector = "", .field_selector = ""}, copy.sink(), 1);
  watch.list_answered(*server.list(watch.next(0)->target, 9), 0);
  ASSERT_TRUE(watch.next(0)->is_watch);
  watch.watch_line(R"({"type":"ERROR","object":{"code":410,"message":"too old"}})", 0);
  watch.watch_line(server.bookmark(), 0);  // Ignored after an error.
  EXPECT_FALSE(watch.next(watch.wake_at())->is_watch);
  EXPECT_EQ(watch.lists(), 2u);
  EXPECT_EQ(copy.objects.size(), 1u) << "the copy stays until the new one is complete";
}

TEST(ListWatch, restarts_a_list_whose_next_page_is_gone) {
  ApiServerModel server;
  for (const char* name : {"a", "b", "c"}) server.put(name);
  Copy copy;
  ListWatch watch({.path = "/p", .label_selector = "", .field_selector = ""}, copy.sink(), 1);
  watch.list_answered(*server.list(watch.next(0)->target, 2), 0);
  ASSERT_THAT(watch.next(0)->target, HasSubstr("&continue="));
  watch.failed(410, 0, 0);
  server.remove("a");
  const auto request = watch.next(watch.wake_at());
  ASSERT_TRUE(request);
  EXPECT_THAT(request->target, testing::Not(HasSubstr("continue=")));
  EXPECT_FALSE(watch.is_complete());
  watch.list_answered(*server.list(request->target, 9), watch.wake_at());
  EXPECT_TRUE(watch.is_complete());
  EXPECT_EQ(copy.objects.size(), 2u) << "the first page was discarded";
}

TEST(ListWatch, requests_a_watch_for_a_random_time_of_5_to_10_minutes) {
  ApiServerModel server;
  server.put("a");
  std::set<std::string> targets;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Copy copy;
    ListWatch watch({.path = "/p", .label_selector = "", .field_selector = ""}, copy.sink(), seed);
    watch.list_answered(*server.list(watch.next(0)->target, 9), 0);
    const std::string target = watch.next(0)->target;
    const int seconds = std::stoi(target.substr(target.find("timeoutSeconds=") + 15));
    EXPECT_GE(seconds, 300);
    EXPECT_LE(seconds, 600);
    targets.insert(target);
  }
  EXPECT_GT(targets.size(), 25u);
}

TEST(ListWatch, backs_off_after_each_failure_and_honors_retry_after) {
  Copy copy;
  ListWatch watch({.path = "/p", .label_selector = "", .field_selector = ""}, copy.sink(), 1);
  Nanoseconds now = 0, longest = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(watch.next(now));
    watch.failed(0, 0, now);
    EXPECT_FALSE(watch.next(watch.wake_at() - 1));
    longest = std::max(longest, watch.wake_at() - now);
    now = watch.wake_at();
    EXPECT_LE(watch.wake_at() - now, max_retry_ns);
  }
  EXPECT_GT(longest, first_retry_ns);
  ASSERT_TRUE(watch.next(now));
  watch.failed(429, 7, now);
  EXPECT_GE(watch.wake_at() - now, 7 * second_ns);
  EXPECT_EQ(watch.problem(), "status 429");
}

TEST(ListWatch, does_not_reopen_a_watch_without_lines_in_a_tight_loop) {
  ApiServerModel server;
  Copy copy;
  ListWatch watch({.path = "/p", .label_selector = "", .field_selector = ""}, copy.sink(), 1);
  Nanoseconds now = 0;
  watch.list_answered(*server.list(watch.next(now)->target, 9), now);
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(watch.next(now));
    watch.ended(now);
    now = watch.wake_at();
  }
  EXPECT_GT(now, second_ns);
}

// A server whose objects change and whose requests fail at random, and a client that may lose any response.
class History {
 public:
  explicit History(uint64_t seed)
      : random_(seed),
        client_({.path = "/p", .label_selector = "", .field_selector = ""}, copy_.sink(), seed) {}

  void step(bool with_faults) {
    if (with_faults) change();
    now_ = std::max(now_, std::min(client_.wake_at(), now_ + second_ns));
    if (const auto request = client_.next(now_)) {
      if (request->is_watch)
        begin_watch(*request, with_faults);
      else
        answer_list(*request, with_faults);
    } else if (watched_) {
      deliver(with_faults);
    }
  }
  bool is_up_to_date() const { return client_.is_complete() && names(copy_.objects) == server_.objects; }
  std::string text() const {
    return fmt::format("server {} objects at {}, copy {} at {}, {}", server_.objects.size(), server_.version,
                       copy_.objects.size(), client_.resource_version(), client_.problem());
  }

 private:
  bool chance(unsigned percent) { return random_() % 100 < percent; }

  static std::map<std::string, uint64_t> names(const std::map<std::string, ObjectMeta>& objects) {
    std::map<std::string, uint64_t> out;
    for (const auto& [uid, object] : objects) out[object.name] = std::stoull(object.resource_version);
    return out;
  }

  void change() {
    const std::string name = fmt::format("o{}", random_() % 8);
    if (chance(40)) server_.put(name);
    if (chance(15)) server_.remove(name);
    if (chance(4)) server_.compact();
  }
  void answer_list(const ListWatch::Request& request, bool with_faults) {
    if (with_faults && chance(15)) return client_.failed(chance(50) ? 0 : 503, random_() % 3, now_);
    if (with_faults && chance(5))
      return client_.list_answered(R"({"metadata":{"resourceVersion":"1"},"items":[{)", now_);
    const auto page = server_.list(request.target, 3);
    return page ? client_.list_answered(*page, now_) : client_.failed(410, 0, now_);
  }
  void begin_watch(const ListWatch::Request& request, bool with_faults) {
    watched_.reset();
    if (with_faults && chance(10)) return client_.failed(chance(50) ? 410 : 429, 0, now_);
    watched_ = std::stoull(ApiServerModel::parameter(request.target, "resourceVersion"));
  }
  void deliver(bool with_faults) {
    const auto lines = server_.watch(*watched_);
    if (!lines) {
      client_.watch_line(R"({"type":"ERROR","object":{"code":410}})", now_);
      return watched_.reset();
    }
    for (const std::string& line : *lines) {
      if (with_faults && chance(5)) {
        if (chance(50)) client_.watch_line(line.substr(0, line.size() / 2), now_);  // Cut in the middle.
        client_.ended(now_);
        return watched_.reset();
      }
      client_.watch_line(line, now_);
      if (with_faults && chance(10)) client_.watch_line(line, now_);  // Twice.
    }
    watched_ = server_.version;
    if (chance(20)) client_.watch_line(server_.bookmark(), now_);
  }

  std::mt19937_64 random_;
  ApiServerModel server_;
  Copy copy_;
  ListWatch client_;
  Nanoseconds now_ = 0;
  std::optional<uint64_t> watched_;  // The open watch has delivered all changes up to this version.
};

TEST(ListWatch, the_copy_equals_the_servers_objects_after_any_history) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    History history(seed);
    for (int i = 0; i < 150; ++i) history.step(/*with_faults=*/true);
    for (int i = 0; i < 200 && !history.is_up_to_date(); ++i) history.step(/*with_faults=*/false);
    ASSERT_TRUE(history.is_up_to_date()) << "seed " << seed << ": " << history.text();
  }
}

}  // namespace
}  // namespace carve::kubernetes
