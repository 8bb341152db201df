#include "node/api/event_routes.h"

#include <gmock/gmock.h>

namespace carve::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t operators[] = {0};
const http::Caller root = http::Caller::user(0, {5, 1}, operators);
const http::Caller user = http::Caller::user(1000, {5, 1}, operators);

// Returns two events of uid 1000, one of another user whose slice has the same name, and one of the agent.
EventLog some_events() {
  EventLog log(70);
  log.add({1, "a", "granted", 1000, 7});
  log.add({2, "a", "ended", 1000, 7});
  log.add({3, "a", "granted", 2000, 8});
  log.add({4, "", "policy set"});
  return log;
}

// A stream that records what is sent.
struct Received final : http::Stream {
  std::vector<std::string> ids;
  bool send(const http::StreamEvent& e) override {
    ids.push_back(e.id);
    return true;
  }
  size_t queued_bytes() const override { return 0; }
  void end() override {}
};

std::vector<std::string> first_ids(const http::Response& response) {
  std::vector<std::string> out;
  for (const auto& e : std::get<http::EventStream>(response.content).first) out.push_back(e.id);
  return out;
}

TEST(EventRoutes, show_a_caller_the_events_of_slices_that_it_owned_at_the_time) {
  const EventLog log = some_events();
  EXPECT_EQ(list_events(log, root).events.size(), 4u);
  const auto seen = list_events(log, user).events;
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].text, "ended");
  EXPECT_THAT(list_events(log, http::Caller()).events, IsEmpty());
}

TEST(EventRoutes, stream_the_listed_events_and_then_each_new_one) {
  EventLog log = some_events();
  const http::Response all = watch_events(log, root, "");
  EXPECT_THAT(first_ids(all), ElementsAre("70-1", "70-2", "70-3", "70-4"));
  EXPECT_EQ(std::get<http::EventStream>(all.content).first[0].data,
            R"({"time_ns":1,"slice":"a","slice_id":7,"text":"granted","caller":""})");
  const http::Response own = watch_events(log, user, "");
  EXPECT_THAT(first_ids(own), ElementsAre("70-1", "70-2"));
  Received to_root, to_user;
  auto one = std::get<http::EventStream>(all.content).subscribe(to_root);
  auto two = std::get<http::EventStream>(own.content).subscribe(to_user);
  log.add({5, "b", "granted", 1000});
  log.add({6, "", "agent"});
  one.reset();
  log.add({7, "b", "ended", 1000});
  EXPECT_THAT(to_root.ids, ElementsAre("70-5", "70-6"));
  EXPECT_THAT(to_user.ids, ElementsAre("70-5", "70-7"));
}

TEST(EventRoutes, resume_a_watch_or_reject_it) {
  EventLog log = some_events();
  EXPECT_THAT(first_ids(watch_events(log, root, "70-3")), ElementsAre("70-4"));
  EXPECT_THAT(first_ids(watch_events(log, root, "70-4")), IsEmpty());
  EXPECT_EQ(watch_events(log, root, "x").status, 400u);
  for (size_t i = 0; i < max_events; ++i) log.add({5, "", "x"});
  const http::Response gone = watch_events(log, root, "70-3");
  EXPECT_EQ(gone.status, 410u);
  EXPECT_THAT(std::get<std::string>(gone.content), HasSubstr("carve:gone"));
}

TEST(EventRoutes, accept_or_reject_the_query) {
  const struct {
    const char* query;
    bool good, watch;
    const char* after;
  } rows[] = {{"", true, false, ""},
              {"watch=true", true, true, ""},
              {"watch=false", true, false, ""},
              {"watch=true&after=70-3", true, true, "70-3"},
              {"after=17&watch=true", true, true, "17"},
              {"after=17", false, false, ""},
              {"watch=1", false, false, ""},
              {"watch", false, false, ""},
              {"watch=true&x=1", false, false, ""}};
  for (const auto& row : rows) {
    const auto query = event_query(row.query);
    ASSERT_EQ(query.has_value(), row.good) << row.query;
    if (!query) continue;
    EXPECT_EQ(query->watch, row.watch) << row.query;
    EXPECT_EQ(query->after, row.after) << row.query;
  }
}

}  // namespace
}  // namespace carve::node
