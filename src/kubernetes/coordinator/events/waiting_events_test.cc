#include "kubernetes/coordinator/events/waiting_events.h"

#include <gmock/gmock.h>

#include "kubernetes/api/testing/simulated_api_client.h"

namespace carve::kubernetes::coordinator {
namespace {

using kubernetes::second_ns;

kubernetes::ObjectMeta waiting_pod() {
  kubernetes::ObjectMeta out;
  out.name_space = "a";
  out.name = "p";
  out.uid = "u";
  return out;
}

TEST(WaitingEvents, a_pod_gets_one_event_per_minute_if_its_message_changes) {
  WaitingEvents events;
  EXPECT_TRUE(events.is_due("u", "8 memory", 0));
  EXPECT_FALSE(events.is_due("u", "8 memory", 120 * second_ns)) << "the message is the same";
  EXPECT_TRUE(events.is_due("u", "7 memory", 130 * second_ns));
  EXPECT_FALSE(events.is_due("u", "6 memory", 189 * second_ns)) << "less than a minute has passed";
  EXPECT_TRUE(events.is_due("u", "6 memory", 190 * second_ns));
  EXPECT_TRUE(events.is_due("v", "6 memory", 190 * second_ns));
  events.forget("u");
  EXPECT_EQ(events.pods(), 1u);
}

TEST(WaitingEvents, an_event_refers_to_its_pod_and_its_note_is_cut_to_the_limit) {
  std::string note(max_note_bytes - 1, 'x');
  note += "\xC3\xA9 and more";
  const auto event = nlohmann::json::parse(
      event_body(waiting_pod(), note,
                 {.reason = "R", .action = "A", .instance = "c-1", .at_utc_ns = 1'767'225'600'123'456'789}));
  EXPECT_EQ(event["eventTime"], "2026-01-01T00:00:00.123456Z");
  EXPECT_EQ(event["regarding"]["uid"], "u");
  EXPECT_EQ(event["metadata"]["namespace"], "a");
  EXPECT_EQ(event["note"].get<std::string>(), std::string(max_note_bytes - 1, 'x'));
  EXPECT_EQ(event["metadata"]["generateName"], "p-");
  kubernetes::ObjectMeta dotted = waiting_pod();
  dotted.name = std::string(199, 'a') + ".b";
  EXPECT_EQ(nlohmann::json::parse(event_body(dotted, "", {}))["metadata"]["generateName"],
            std::string(199, 'a') + "-");
}

TEST(WaitingEvents, the_event_of_a_waiting_pod_is_written_to_the_cluster) {
  kubernetes::VirtualTime time;
  kubernetes::ApiServerFake server;
  kubernetes::SimulatedApiClient client(time, server, 1);
  EventWriter writer(client, "c-1", [] { return int64_t{0}; });
  for (int i = 0; i < 5; ++i) writer.waits(waiting_pod(), [] { return std::string("0/1 nodes can serve"); });
  writer.waits({}, [] { return std::string("a pod without a namespace"); });
  time.run_for(5 * second_ns);
  ASSERT_EQ(server.requests().size(), 1u);
  EXPECT_EQ(server.requests().front(), "POST /apis/events.k8s.io/v1/namespaces/a/events");
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
