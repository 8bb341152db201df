#include "controller/api/event_routes.h"

#include <gmock/gmock.h>

#include "controller/api/controller_routes.h"
#include "controller/api/testing/routes_fake.h"
#include "controller/api/testing/views_fake.h"
#include "objects/service_object.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;

struct EventViews : ViewsFake {
  Outcome<std::vector<Revision>> revisions(const std::string&) const override { return kept_revisions; }
  std::vector<Revision> kept_revisions;
};

struct EventJournalFake final : JournalFake, EventJournal {
  using JournalFake::write;
  Outcome<void> write(std::span<const KeptEvent>, std::span<const EventKey>) override { return {}; }
};

// The API with the service "a" of two replicas, which was created at second 1.
struct EventApi {
  EventViews views;
  EventJournalFake journal;
  JournaledRegistry objects{journal, {}, 0};
  TokenBook tokens{journal, {}};
  ObjectEvents events{objects, journal, {}};
  ControllerRoutes routes{{.views = views,
                           .audit = [](const AuditLine&) {},
                           .objects = objects,
                           .tokens = tokens,
                           .events = &events}};

  EventApi() {
    views.now = 1'000'000'000;
    EXPECT_TRUE(objects.add({.key = {objects::Kind::service, "default", "a"},
                             .account = "root",
                             .uid = "u",
                             .spec = objects::ServiceSpec{.replicas = 2}}));
  }
  http::Response ask(const std::string& method, const std::string& target, const std::string& body = "") {
    constexpr uint32_t operators[] = {0};
    return routes.answer(request_of(method, target, body), http::Caller::user(0, {5, 1}, operators));
  }
  objects::ObjectEventList listed(const std::string& target) {
    const http::Response response = ask("GET", target);
    EXPECT_EQ(response.status, 200u) << target;
    const auto list =
        api::read<objects::ObjectEventList>(std::get<std::string>(response.content), api::Reading::strict);
    EXPECT_TRUE(list) << list.error();
    return *list;
  }
};

std::vector<std::string> reasons_of(const objects::ObjectEventList& list) {
  std::vector<std::string> out;
  for (const objects::ObjectEvent& event : list.items) out.emplace_back(carve::text(event.reason));
  return out;
}

TEST(EventRoutes, show_an_event_immediately_for_its_object_and_in_the_full_list) {
  EventApi api;
  const objects::ObjectEventList list = api.listed("/v1/services/a/events");
  ASSERT_EQ(list.items.size(), 1u);
  const objects::ObjectEvent& event = list.items[0];
  EXPECT_EQ(event.kind + " " + event.namespace_ + "/" + event.name, "Service default/a");
  EXPECT_EQ(event.type, objects::EventType::normal);
  EXPECT_EQ(event.message, "2 replicas, account root");
  EXPECT_EQ(event.count, 1u);
  EXPECT_EQ(event.first_at, "1970-01-01T00:00:01.000Z");
  EXPECT_EQ(event.last_at, event.first_at);
  EXPECT_THAT(reasons_of(api.listed("/v1/events")), ElementsAre("Created"));
  EXPECT_THAT(reasons_of(api.listed("/v1/events?namespace=other")), testing::IsEmpty());
}

TEST(EventRoutes, list_events_of_a_deleted_object_and_none_of_an_unknown_one) {
  EventApi api;
  ASSERT_TRUE(api.objects.remove({objects::Kind::service, "default", "a"}));
  EXPECT_THAT(reasons_of(api.listed("/v1/services/a/events")), ElementsAre("Created", "Deleted"));
  for (const char* path : {"/v1/services/b/events", "/v1/nodes/n1/events", "/v1/pools/p/events"})
    EXPECT_EQ(api.ask("GET", path).status, 404u) << path;
}

TEST(EventRoutes, show_earlier_objects_of_the_name_on_request) {
  EventApi api;
  const ObjectKey key{objects::Kind::service, "default", "a"};
  ASSERT_TRUE(api.objects.remove(key));
  ASSERT_TRUE(api.objects.add({.key = key, .account = "root", .uid = "u2"}));
  const objects::ObjectEventList list = api.listed("/v1/services/a/events");
  EXPECT_THAT(reasons_of(list), ElementsAre("Created"));
  EXPECT_EQ(list.items[0].uid, "u2");
  EXPECT_EQ(api.listed("/v1/services/a/events?lives=last").items.size(), 1u);
  EXPECT_EQ(api.listed("/v1/services/a/events?lives=all&namespace=default").items.size(), 3u);
  EXPECT_EQ(api.ask("GET", "/v1/services/a/events?lives=some").status, 400u);
}

TEST(EventRoutes, list_a_return_to_an_earlier_revision_as_an_event) {
  EventApi api;
  const std::string former = api::write(objects::ServiceSpec{.replicas = 1, .pool = "p"});
  api.views.kept_revisions = {{.number = 1, .spec = former}, {.number = 2}};
  ASSERT_EQ(api.ask("POST", "/v1/services/a/undo").status, 200u);
  EXPECT_THAT(reasons_of(api.listed("/v1/services/a/events")), ElementsAre("Created", "Changed", "Undone"));
}

TEST(EventRoutes, name_the_caller_whose_request_caused_the_event) {
  EventApi api;
  EXPECT_EQ(api.listed("/v1/services/a/events").items[0].caller, "") << "added by the test, not by a request";
  ASSERT_EQ(api.ask("POST", "/v1/services/a/stop").status, 200u);
  const auto stopped = api.listed("/v1/services/a/events").items.back();
  EXPECT_EQ(stopped.reason, objects::EventReason::stopped);
  EXPECT_EQ(stopped.caller, "root");
  ASSERT_TRUE(api.objects.remove({objects::Kind::service, "default", "a"}));
  for (const objects::ObjectEvent& event : api.listed("/v1/services/a/events").items)
    EXPECT_EQ(event.caller, event.reason == objects::EventReason::stopped ? "root" : "")
        << "the controller itself removed it";
}

TEST(EventRoutes, reject_an_invalid_limit) {
  EventApi api;
  EXPECT_EQ(api.ask("GET", "/v1/events?limit=0").status, 400u);
  EXPECT_EQ(api.ask("GET", "/v1/events?limit=1").status, 200u);
}

}  // namespace
}  // namespace carve::controller
