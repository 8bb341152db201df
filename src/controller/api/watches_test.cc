#include "controller/api/watches.h"

#include <gmock/gmock.h>

#include "controller/api/watch_routes.h"
#include "controller/objects/testing/journals.h"
#include "objects/job_object.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uint32_t watch_operators[] = {0};
http::Caller watching(uint32_t uid) { return http::Caller::user(uid, {5, 1}, watch_operators); }

// A stream that collects its events as "TYPE NAME".
struct StreamFake final : http::Stream {
  std::vector<http::StreamEvent> events;
  bool has_ended = false;
  bool send(const http::StreamEvent& e) override {
    events.push_back(e);
    return true;
  }
  size_t queued_bytes() const override { return 0; }
  void end() override { has_ended = true; }
};

struct Watched {
  NoJournal journal;
  JournaledRegistry objects{journal, {}, 0};
  Watches watches{objects};

  void add(const std::string& name, std::map<std::string, std::string> labels = {},
           const std::string& name_space = "default") {
    Object object{.key = {.name = name}, .labels = std::move(labels), .owner_uid = 1000};
    object.key.namespace_ = name_space;
    object.spec = objects::ServiceSpec{.run = {.env = {{"TOKEN", "secret"}}}};
    ASSERT_TRUE(objects.add(object));
  }
  void label(const std::string& name, const std::string& value) {
    ASSERT_TRUE(objects.update({.name = name}, [&](Object& o) -> Outcome<void> {
      o.labels["app"] = value;
      return {};
    }));
  }
};

struct Watcher {
  StreamFake stream;
  std::shared_ptr<void> subscription;

  Watcher(Watched& in, const std::string& query, const http::Caller& caller = watching(1000)) {
    const auto wanted = watch_query({.method = "GET", .path = "/v1/watch", .query = query, .body = ""});
    auto begun = in.watches.begin(*wanted, caller);
    stream.events = begun->first;
    subscription = begun->subscribe(stream);
  }
  // Returns the received changes, such as "modified a 3", and clears them.
  std::vector<std::string> seen() {
    std::vector<std::string> out;
    for (const auto& e : stream.events) {
      const size_t at = e.data.find(R"("name":")");
      const std::string name =
          at == std::string::npos ? "" : e.data.substr(at + 8, e.data.find('"', at + 8) - at - 8);
      out.push_back(e.type + " " + name + " " + e.id);
    }
    stream.events.clear();
    return out;
  }
};

TEST(Watches, send_the_objects_and_then_each_change) {
  Watched w;
  w.add("a");
  Watcher watcher(w, "");
  EXPECT_THAT(watcher.seen(), ElementsAre("added a ", "bookmark  1"));
  w.add("b");
  w.label("a", "x");
  w.watches.deliver();
  EXPECT_THAT(watcher.seen(), ElementsAre("added b 2", "modified a 3"));
  ASSERT_TRUE(w.objects.remove({.name = "a"}));
  w.watches.deliver();
  EXPECT_THAT(watcher.stream.events.front().data, HasSubstr(R"("resourceVersion":"4")"));
  EXPECT_THAT(watcher.seen(), ElementsAre("deleted a 4"));
  w.watches.deliver();
  EXPECT_THAT(watcher.seen(), IsEmpty());
}

TEST(Watches, continue_after_the_watchers_version) {
  Watched w;
  w.add("a");
  w.add("b");
  w.label("a", "x");
  EXPECT_THAT(Watcher(w, "resourceVersion=1").seen(), ElementsAre("added b 2", "modified a 3"));
  Watcher newest(w, "resourceVersion=3");
  EXPECT_THAT(newest.seen(), IsEmpty());
  w.label("a", "y");
  w.watches.deliver();
  EXPECT_THAT(newest.seen(), ElementsAre("modified a 4"));
}

// Watches that show a queue position, which the registry does not have, as the spec's number of replicas.
struct PositionWatched {
  NoJournal journal;
  JournaledRegistry objects{journal, {}, 0};
  std::map<std::string, std::string> reasons;
  Watches watches{objects,
                  {.shown =
                       [this](const Object& object) {
                         Object out = object;
                         if (const auto known = reasons.find(object.key.name); known != reasons.end())
                           out.status = objects::JobStatus{.reason = known->second};
                         return out;
                       },
                   .values =
                       [this](const Object& object) {
                         const auto known = reasons.find(object.key.name);
                         return known == reasons.end() ? std::string() : known->second;
                       }}};

  void add(const std::string& name) {
    ASSERT_TRUE(objects.add({.key = {.kind = objects::Kind::job, .name = name}}));
    reasons[name] = "first";
  }
};

TEST(Watches, send_an_object_again_when_a_value_outside_of_the_registry_changes) {
  PositionWatched w;
  w.add("a");
  w.add("b");
  StreamFake stream;
  auto begun =
      w.watches.begin(*watch_query({.method = "GET", .path = "/v1/watch", .body = ""}), watching(1000));
  EXPECT_THAT(begun->first.front().data, HasSubstr(R"("reason":"first")"));
  const auto subscription = begun->subscribe(stream);
  w.watches.refresh();
  stream.events.clear();
  w.watches.refresh();
  EXPECT_THAT(stream.events, IsEmpty()) << "nothing has changed";
  w.reasons["b"] = "second";
  w.watches.refresh();
  ASSERT_EQ(stream.events.size(), 1u);
  EXPECT_EQ(stream.events[0].type, "modified");
  EXPECT_EQ(stream.events[0].id, "") << "the version of the objects has not changed";
  EXPECT_THAT(stream.events[0].data, HasSubstr(R"("reason":"second")"));
  EXPECT_THAT(stream.events[0].data, HasSubstr(R"("resourceVersion":"2")"));
  const auto resumed = w.watches.begin(
      *watch_query({.method = "GET", .path = "/v1/watch", .query = "resourceVersion=2", .body = ""}),
      watching(1000));
  EXPECT_EQ(resumed->first.size(), 2u) << "it may have missed a change without a version";
}

TEST(Watches, refresh_a_limited_number_of_objects_at_a_time) {
  PositionWatched w;
  for (size_t i = 0; i < 2 * max_refreshed_objects + 10; ++i) w.add(fmt::format("j{}", i));
  StreamFake stream;
  auto begun =
      w.watches.begin(*watch_query({.method = "GET", .path = "/v1/watch", .body = ""}), watching(1000));
  const auto subscription = begun->subscribe(stream);
  std::set<std::string> sent;
  for (const size_t expected : {max_refreshed_objects, max_refreshed_objects, size_t{10}, size_t{0}}) {
    stream.events.clear();
    w.watches.refresh();
    EXPECT_EQ(stream.events.size(), expected);
    for (const auto& event : stream.events) sent.insert(event.data);
  }
  EXPECT_EQ(sent.size(), 2 * max_refreshed_objects + 10);
}

TEST(Watches, prefer_the_last_event_id_to_the_version_of_the_query) {
  http::Request request{.method = "GET", .path = "/v1/watch", .query = "resourceVersion=1", .body = ""};
  request.headers.add("last-event-id", "7");
  EXPECT_EQ(watch_query(request)->behind, 7u);
  for (const char* wrong : {"", "x", "-1", "7 ", "18446744073709551616", "7-1"}) {
    http::Request other = request;
    other.headers = {};
    other.headers.add("Last-Event-ID", wrong);
    EXPECT_FALSE(watch_query(other)) << wrong;
  }
}

TEST(Watches, respond_with_gone_if_changes_are_no_longer_kept) {
  Watched w;
  w.add("a");
  for (size_t i = 0; i <= max_kept_changes; ++i) w.label("a", std::to_string(i));
  const auto old = w.watches.begin(*watch_query({.query = "resourceVersion=1"}), watching(0));
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().kind, FailureKind::gone);
  Watcher late(w, "");
  for (size_t i = 0; i <= max_kept_changes; ++i) w.label("a", std::to_string(i));
  w.watches.deliver();
  EXPECT_TRUE(late.stream.has_ended) << "the watcher cannot get all changes";
}

TEST(Watches, reject_a_version_in_the_future) {
  Watched w;
  EXPECT_FALSE(w.watches.begin(*watch_query({.query = "resourceVersion=1"}), watching(0)));
}

TEST(Watches, hide_the_environment_from_other_users) {
  Watched w;
  w.add("a");
  Watcher own(w, ""), other(w, "", watching(1001)),
      viewer(w, "", http::Caller::token("x", http::Role::viewer));
  w.label("a", "x");
  w.watches.deliver();
  for (const auto& e : own.stream.events)
    EXPECT_THAT(e.data, HasSubstr(e.type == "bookmark" ? "resourceVersion" : "secret"));
  for (const Watcher* hidden : {&other, &viewer})
    for (const auto& e : hidden->stream.events) EXPECT_THAT(e.data, Not(HasSubstr("secret")));
}

TEST(Watches, select_objects_by_kind_and_namespace) {
  Watched w;
  w.add("a");
  w.add("b", {}, "other");
  EXPECT_THAT(Watcher(w, "namespace=other").seen(), ElementsAre("added b ", "bookmark  2"));
  EXPECT_THAT(Watcher(w, "kinds=applications").seen(), ElementsAre("bookmark  2"));
  EXPECT_THAT(Watcher(w, "kinds=services,applications").seen().size(), 3u);
  EXPECT_FALSE(watch_query({.query = "kinds=services,things"}));
  EXPECT_FALSE(watch_query({.query = "kinds="}));
  EXPECT_FALSE(watch_query({.query = "labelSelector=a,,b"}));
  EXPECT_FALSE(watch_query({.query = "other=1"}));
}

TEST(Watches, send_an_object_that_no_longer_matches_as_deleted) {
  Watched w;
  w.add("a", {{"app", "x"}});
  w.add("b", {{"app", "y"}});
  Watcher watcher(w, "labelSelector=app%3Dx");
  EXPECT_THAT(watcher.seen(), ElementsAre("added a ", "bookmark  2"));
  w.label("b", "z");
  w.label("a", "y");
  w.label("a", "z");
  w.label("b", "x");
  w.label("b", "y");
  w.watches.deliver();
  EXPECT_THAT(watcher.seen(), ElementsAre("deleted a 4", "added b 6", "deleted b 7"));
}

TEST(Watches, send_a_selected_object_that_was_added_since_as_added) {
  Watched w;
  w.add("a", {{"app", "x"}});
  w.add("b", {{"app", "x"}});
  w.label("b", "y");
  w.label("a", "y");
  EXPECT_THAT(Watcher(w, "labelSelector=app%3Dx&resourceVersion=1").seen(),
              ElementsAre("added b 2", "deleted b 3", "deleted a 4"));
}

TEST(Watches, send_a_bookmark_to_a_watcher_that_gets_no_changes) {
  Watched w;
  w.add("a");
  Watcher watcher(w, "namespace=other");
  watcher.seen();
  for (unsigned i = 0; i < bookmark_interval_changes; ++i) w.label("a", std::to_string(i));
  w.watches.deliver();
  EXPECT_THAT(watcher.seen(), ElementsAre(fmt::format("bookmark  {}", bookmark_interval_changes + 1)));
}

TEST(Watches, end_the_stream_when_the_watchers_token_was_removed) {
  Watched w;
  bool is_valid = true;
  StreamFake stream;
  const auto begun = w.watches.begin(*watch_query({.query = "resourceVersion=0"}),
                                     http::Caller::token("x", http::Role::viewer), [&] { return is_valid; });
  const auto subscription = begun->subscribe(stream);
  w.add("a");
  w.watches.deliver();
  EXPECT_EQ(stream.events.size(), 1u);
  is_valid = false;
  w.label("a", "x");
  w.watches.deliver();
  EXPECT_EQ(stream.events.size(), 1u);
  EXPECT_TRUE(stream.has_ended);
}

TEST(Watches, remove_a_watcher_that_disconnects) {
  Watched w;
  w.add("a");
  { Watcher gone(w, ""); }
  Watcher second(w, "");
  second.seen();
  w.label("a", "x");
  w.watches.deliver();
  EXPECT_THAT(second.seen(), ElementsAre("modified a 2"));
}

}  // namespace
}  // namespace carve::controller
