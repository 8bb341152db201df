#include "kubernetes/api/watched_objects.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "kubernetes/api/testing/simulated_api_client.h"

namespace carve::kubernetes {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;
using FaultKind = ApiFault::Kind;

constexpr const char* pods_path = "/api/v1/pods";

const Selection sliced{.path = pods_path,
                       .label_selector = "carve.dev/sliced=true",
                       .field_selector = "status.phase!=Succeeded,status.phase!=Failed"};

json some_pod(const std::string& name, const std::string& phase = "Pending", const char* is_sliced = "true") {
  return {{"metadata", {{"name", name}, {"namespace", "a"}, {"labels", {{"carve.dev/sliced", is_sliced}}}}},
          {"spec", json::object()},
          {"status", {{"phase", phase}}}};
}

// Built only from the sink's calls: the version of each object by uid.
struct Observer {
  std::map<std::string, std::string> versions;
  unsigned replaced = 0;

  ListWatch::Sink sink() {
    return {.replaced =
                [this](const auto& all) {
                  versions.clear();
                  for (const auto& [uid, object] : all) versions[uid] = object.resource_version;
                  ++replaced;
                },
            .changed = [this](const ObjectMeta& object) { versions[object.uid] = object.resource_version; },
            .removed = [this](const ObjectMeta& object) { versions.erase(object.uid); }};
  }
};

// Returns the objects that the selection has on the server now.
std::map<std::string, std::string> stored(const ApiServerFake& server) {
  std::map<std::string, std::string> out;
  for (const json& object : server.all(pods_path))
    if (object["metadata"]["labels"]["carve.dev/sliced"] == "true" &&
        object["status"]["phase"] != "Succeeded" && object["status"]["phase"] != "Failed")
      out[object["metadata"]["uid"]] = object["metadata"]["resourceVersion"];
  return out;
}

// A server, a client and the observer of its pods.
struct Scenario {
  VirtualTime time;
  ApiServerFake server;
  SimulatedApiClient client;
  Observer observer;
  std::optional<ObjectWatch> watched;

  explicit Scenario(uint64_t seed) : client(time, server, seed) {}
  void start(uint64_t seed) { watched.emplace(client, sliced, observer.sink(), seed); }
};

TEST(ObjectWatch, follows_only_the_metadata_of_the_selection) {
  Scenario scenario(1);
  scenario.server.page_limit = 2;
  for (const char* name : {"p", "q", "r"}) scenario.server.put(pods_path, some_pod(name));
  scenario.server.put(pods_path, some_pod("plain", "Pending", "false"));
  scenario.start(1);
  EXPECT_FALSE(scenario.watched->is_complete());
  scenario.time.run_for(second_ns);
  EXPECT_TRUE(scenario.watched->is_complete());
  EXPECT_EQ(scenario.observer.versions, stored(scenario.server));
  EXPECT_EQ(scenario.observer.versions.size(), 3u);
  EXPECT_EQ(scenario.observer.replaced, 1u);
  scenario.server.put(pods_path, some_pod("p", "Succeeded"));
  scenario.server.put(pods_path, some_pod("s"));
  scenario.time.run_for(second_ns);
  EXPECT_EQ(scenario.observer.versions, stored(scenario.server));
  EXPECT_EQ(scenario.observer.versions.size(), 3u) << "a pod that has ended leaves the selection";
  EXPECT_EQ(scenario.observer.replaced, 1u);
  EXPECT_THAT(scenario.server.requests().front(), StartsWith("GET /api/v1/pods?limit=500&labelSelector="));
  EXPECT_THAT(scenario.server.requests().back(),
              StartsWith("WATCH /api/v1/pods?watch=true&allowWatchBookmarks=true"));
  EXPECT_EQ(scenario.server.requests().size(), 3u);
}

TEST(WatchedObjects, updates_the_copy_before_it_reports_a_change) {
  Scenario scenario(5);
  std::optional<WatchedObjects> pods;
  std::vector<size_t> sizes;
  const auto note = [&](const ObjectMeta& pod) {
    sizes.push_back(pods->by_uid().size());
    EXPECT_EQ(pods->by_uid().contains(pod.uid), sizes.back() == 2);
  };
  scenario.server.put(pods_path, some_pod("p"));
  pods.emplace(
      scenario.client, sliced,
      WatchedObjects::Sink{
          .replaced = [&] { sizes.push_back(pods->by_uid().size()); }, .changed = note, .removed = note},
      5);
  scenario.time.run_for(second_ns);
  scenario.server.put(pods_path, some_pod("q"));
  scenario.time.run_for(second_ns);
  scenario.server.remove(pods_path, "a", "q");
  scenario.time.run_for(second_ns);
  EXPECT_THAT(sizes, testing::ElementsAre(1, 2, 1));
}

TEST(ObjectWatch, needs_one_list_in_a_day_without_faults) {
  Scenario scenario(2);
  scenario.start(2);
  for (int minute = 0; minute < 24 * 60; ++minute) {
    scenario.server.put(pods_path, some_pod(fmt::format("p{}", minute % 50)));
    if (minute % 7 == 0) scenario.server.end_watches();
    scenario.server.send_bookmarks();
    if (minute % 100 == 0) scenario.server.compact();
    scenario.time.run_for(60 * second_ns);
  }
  EXPECT_EQ(scenario.observer.versions, stored(scenario.server));
  EXPECT_EQ(scenario.watched->lists(), 1u);
  EXPECT_EQ(scenario.watched->problem(), "");
}

TEST(ObjectWatch, reopens_a_silent_watch_from_its_version) {
  Scenario scenario(3);
  scenario.start(3);
  scenario.time.run_for(second_ns);
  scenario.server.add_fault({.kind = FaultKind::late});
  scenario.server.put(pods_path, some_pod("p"));
  scenario.time.run_for(80 * second_ns);
  EXPECT_TRUE(scenario.observer.versions.empty());
  scenario.time.run_for(20 * second_ns);
  EXPECT_EQ(scenario.observer.versions, stored(scenario.server));
  EXPECT_EQ(scenario.watched->lists(), 1u);
  EXPECT_GT(scenario.watched->heard_at(), 80 * second_ns);
}

TEST(ObjectWatch, waits_as_long_as_the_server_requests) {
  Scenario scenario(4);
  scenario.server.add_fault({.kind = FaultKind::status, .status = 429, .retry_after_seconds = 17});
  scenario.start(4);
  scenario.time.run_for(16 * second_ns);
  EXPECT_EQ(scenario.server.requests().size(), 1u);
  EXPECT_THAT(scenario.watched->problem(), HasSubstr("status 429: injected fault"));
  scenario.time.run_for(4 * second_ns);
  EXPECT_TRUE(scenario.watched->is_complete());
  EXPECT_EQ(scenario.watched->problem(), "");
}

ApiFault random_fault(std::mt19937_64& dice) {
  constexpr FaultKind kinds[] = {FaultKind::status, FaultKind::lose_request, FaultKind::lose_answer,
                                 FaultKind::hang,   FaultKind::error_event,  FaultKind::cut_line,
                                 FaultKind::close,  FaultKind::duplicate,    FaultKind::late};
  constexpr unsigned statuses[] = {409, 410, 410, 429, 500, 503, 401};
  return {.kind = kinds[dice() % std::size(kinds)],
          .method = dice() % 2 == 0 ? "WATCH" : "",
          .status = statuses[dice() % std::size(statuses)],
          .retry_after_seconds = static_cast<unsigned>(dice() % 3),
          .times = static_cast<unsigned>(1 + dice() % 3)};
}

void random_change(std::mt19937_64& dice, Scenario& scenario) {
  const std::string name = fmt::format("p{}", dice() % 12);
  const unsigned what = dice() % 100;
  if (what < 60)
    scenario.server.put(pods_path, some_pod(name, dice() % 5 == 0 ? "Failed" : "Running",
                                            dice() % 6 == 0 ? "false" : "true"));
  else if (what < 80)
    scenario.server.remove(pods_path, "a", name);
  else if (what < 88)
    scenario.server.add_fault(random_fault(dice));
  else if (what < 90)
    scenario.server.compact();
  else if (what < 94)
    scenario.server.send_bookmarks();
  else if (what < 96)
    scenario.server.end_watches();
  else if (what < 97)
    scenario.client.set_connected(false);
  else
    scenario.server.release_late();
  if (dice() % 10 == 0) scenario.client.set_connected(true);
}

TEST(ObjectWatch, the_observer_has_the_servers_objects_after_any_script_of_faults) {
  uint64_t replaced = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 dice(seed);
    Scenario scenario(seed);
    scenario.server.page_limit = 1 + dice() % 5;
    for (int i = 0; i < 8; ++i) scenario.server.put(pods_path, some_pod(fmt::format("p{}", i)));
    scenario.start(seed);
    for (int i = 0; i < 120; ++i) {
      random_change(dice, scenario);
      scenario.time.run_for(static_cast<Nanoseconds>(dice() % 2000) * second_ns / 1000);
    }
    scenario.server.clear_faults();
    scenario.client.set_connected(true);
    scenario.time.run_for(200 *
                          second_ns);  // A silent watch is abandoned after 90 s; then a wait of at most 30 s.
    ASSERT_EQ(scenario.observer.versions, stored(scenario.server))
        << "seed " << seed << ": " << scenario.watched->problem();
    replaced += scenario.observer.replaced;
  }
  EXPECT_GT(replaced, 600u) << "the faults cause new lists";
}

}  // namespace
}  // namespace carve::kubernetes
