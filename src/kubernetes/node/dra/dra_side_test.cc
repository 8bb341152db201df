// The DRA driver's sockets, called as kubelet calls them.
#include "kubernetes/node/dra/dra_side.h"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "kubernetes/node/testing/agent_api_fake.h"
#include "kubernetes/node/testing/dra_kubelet_fake.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::node {
namespace {

using api::Json;
using testing::ElementsAre;
using testing::HasSubstr;

// Waits until `is_true` returns true. Returns false after a minute.
bool until(const std::function<bool()>& is_true) {
  for (int i = 0; i < 6000; ++i) {
    if (is_true()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class DraSideTest : public testing::Test {
 protected:
  DraSideTest() {
    char name[] = "/tmp/cdra-XXXXXX";
    folder = mkdtemp(name);
    kubelet = std::make_unique<DraKubeletFake>(folder);
    side = std::make_unique<DraSide>(
        "n1", DraSockets(folder), agent,
        DraSide::Links{.claim = [this](const ClaimName& claim) { return claim_text(claim); },
                       .kubelet_asked = [this] { ++asked; },
                       .registered = [this](const std::string& problem) { problems.push_back(problem); },
                       .expect_container = [] {},
                       .note = [this](const EventNote& note) { notes.push_back(note); }});
  }
  ~DraSideTest() override {
    side.reset();
    kubelet.reset();
    std::filesystem::remove_all(folder);
  }
  ClaimPreparer::ClaimAnswer claim_text(const ClaimName& claim) {
    const auto found = claims.find(claim.name);
    if (found == claims.end()) return std::optional<std::string>();
    return std::optional(found->second.dump());
  }
  void put_claim(const std::string& name, const std::string& uid, const std::string& memory,
                 std::vector<std::string> pods) {
    Json reserved = Json::array();
    for (const std::string& pod : pods)
      reserved.push_back({{"resource", "pods"}, {"name", pod}, {"uid", "uid-" + pod}});
    claims[name] = {{"metadata", {{"namespace", "a"}, {"name", name}, {"uid", uid}}},
                    {"status",
                     {{"allocation",
                       {{"devices",
                         {{"results",
                           {{{"request", "gpu"},
                             {"driver", "carve.dev"},
                             {"pool", "n1"},
                             {"device", "gpu-0"},
                             {"shareID", "s"},
                             {"consumedCapacity", {{"memory", memory}}}}}}}}}},
                      {"reservedFor", reserved}}}};
  }
  std::string error_of(const ClaimName& claim) {
    const auto prepared = kubelet->prepare({claim});
    if (!prepared) return prepared.error();
    return prepared->front() ? "" : prepared->front().error();
  }

  std::string folder;
  AgentApiFake agent;
  std::map<std::string, Json> claims;
  std::atomic<int> asked = 0;
  std::vector<std::string> problems;
  std::vector<EventNote> notes;
  std::unique_ptr<DraKubeletFake> kubelet;
  std::unique_ptr<DraSide> side;
};

TEST_F(DraSideTest, kubelet_registers_the_driver_with_the_versions_that_it_knows) {
  EXPECT_FALSE(kubelet->register_driver()) << "nothing is served yet";
  side->serve();
  const auto info = kubelet->register_driver();
  ASSERT_TRUE(info) << info.error();
  EXPECT_EQ(info->type, "DRAPlugin");
  EXPECT_EQ(info->name, "carve.dev");
  EXPECT_EQ(info->endpoint, folder + "/plugins/carve.dev/dra.sock");
  EXPECT_THAT(info->versions, ElementsAre("v1.DRAPlugin", "v1alpha1.DRAResourceHealth"));
  EXPECT_THAT(problems, ElementsAre(""));
  for (const char* known : {"v1alpha1.DRAResourceHealth", "v1.DRAPlugin"})
    EXPECT_TRUE(kubelet->register_driver({known, "v1beta1.DRAPlugin"})) << known;
  EXPECT_THAT(kubelet->register_driver({"v1beta1.DRAPlugin", "v2.DRAPlugin"}).error(),
              HasSubstr("none of the supported"));
  EXPECT_THAT(problems.back(), HasSubstr("none of the supported"));
  EXPECT_EQ(asked, 4);
}

TEST_F(DraSideTest, the_sockets_replace_files_of_a_killed_program_and_come_back) {
  std::filesystem::create_directories(folder + "/plugins/carve.dev");
  std::ofstream(folder + "/plugins/carve.dev/dra.sock") << "left";
  std::ofstream(folder + "/plugins_registry/carve.dev-reg.sock") << "left";
  side->serve();
  EXPECT_TRUE(kubelet->register_driver());
  for (const char* file : {"/plugins/carve.dev/dra.sock", "/plugins_registry/carve.dev-reg.sock"}) {
    std::filesystem::remove(folder + file);
    side->serve();
    EXPECT_TRUE(std::filesystem::exists(folder + file));
    ASSERT_TRUE(kubelet->register_driver()) << file;
    EXPECT_THAT(error_of({"a", "none", "0"}), HasSubstr("there is no such claim"));
  }
  side->end();
  EXPECT_FALSE(std::filesystem::exists(folder + "/plugins_registry/carve.dev-reg.sock"));
  std::filesystem::remove_all(folder + "/plugins_registry");
  side->serve();
  EXPECT_FALSE(kubelet->register_driver());
}

TEST_F(DraSideTest, claims_are_prepared_again_and_unprepared_in_any_order) {
  side->serve();
  ASSERT_TRUE(kubelet->register_driver());
  put_claim("web", "0b6c", "4Gi", {"p0", "p1"});
  const ClaimName web{"a", "web", "0b6c"}, gone{"a", "gone", "1111"};
  EXPECT_THAT(*kubelet->unprepare({web, gone}), ElementsAre("", "")) << "nothing was prepared";
  const auto both = kubelet->prepare({gone, web});
  ASSERT_TRUE(both) << both.error();
  EXPECT_THAT((*both)[0].error(), HasSubstr("claim a/gone: there is no such claim"));
  ASSERT_TRUE((*both)[1]) << (*both)[1].error();
  EXPECT_THAT(*(*both)[1], ElementsAre(PreparedDevice{"gpu", "n1", "gpu-0", "s", "carve.dev/claim=c-0b6c"}));
  EXPECT_EQ(error_of(web), "") << "a second time";
  EXPECT_THAT(error_of({"a", "web", "2222"}), HasSubstr("its uid is 0b6c, not 2222"));
  ASSERT_GE(notes.size(), 2u);
  EXPECT_EQ(notes[0].reason, "CarveSliceReady");
  EXPECT_EQ(notes[0].about.name, "p0");
  EXPECT_EQ(notes[1].about.uid, "uid-p1");
  claims.clear();  // The claim was deleted by force.
  EXPECT_THAT(*kubelet->unprepare({web}), ElementsAre(""));
  EXPECT_THAT(agent.released, testing::Contains("slice-1"));
}

TEST_F(DraSideTest, a_claim_without_room_is_reported_with_the_claims_that_have_the_device) {
  side->serve();
  ASSERT_TRUE(kubelet->register_driver());
  put_claim("web", "0b6c", "4Gi", {"p0"});
  put_claim("late", "1111", "4Gi", {"p1"});
  ASSERT_EQ(error_of({"a", "web", "0b6c"}), "");
  agent.state.slices[0].parts.emplace_back();
  agent.refusals.assign(
      10'000, {.type = shown(FailureKind::insufficient_capacity).type, .status = 409, .detail = "no room"});
  EXPECT_FALSE(kubelet->prepare({{"a", "late", "1111"}}, 1)) << "kubelet stops waiting";
  ASSERT_TRUE(until([&] { return notes.size() == 2; }));
  EXPECT_EQ(notes[1].reason, "CarveOvercommitted");
  EXPECT_EQ(notes[1].note, "claim a/late: no room; its devices have slices of claim a/web");
  EXPECT_EQ(notes[1].about.name, "p1");
}

TEST_F(DraSideTest, pods_that_join_a_claim_later_are_looked_up) {
  side->serve();
  ASSERT_TRUE(kubelet->register_driver());
  put_claim("web", "0b6c", "4Gi", {"p0"});
  ASSERT_EQ(error_of({"a", "web", "0b6c"}), "");
  put_claim("web", "0b6c", "4Gi", {"p0", "p1"});
  EXPECT_TRUE(side->look_up(agent.state.slices[0]));
  EXPECT_EQ(agent.state.slices[0].pods.size(), 2u);
  put_claim("web", "3333", "4Gi", {"p9"});
  EXPECT_TRUE(side->look_up(agent.state.slices[0])) << "another claim of that name";
  EXPECT_EQ(agent.state.slices[0].pods.size(), 2u);
}

TEST_F(DraSideTest, kubelet_sees_the_health_of_the_devices) {
  side->serve();
  ASSERT_TRUE(kubelet->register_driver());
  kubelet->watch_health();
  side->report_health();
  EXPECT_TRUE(until([&] {
    return kubelet->health() == std::vector{DeviceCondition{"n1", "gpu-0", true, ""}};
  }));
  side->report_health();
  agent.state.devices[0].health = {HealthState::xid, "Xid 79 (the device has fallen off the bus)"};
  side->report_health();
  EXPECT_TRUE(until([&] { return !kubelet->health().front().is_healthy; }));
  EXPECT_THAT(kubelet->health().front().message, HasSubstr("Xid 79"));
  EXPECT_EQ(kubelet->health_messages(), 2u) << "an unchanged state is not sent again before 10 s";
  kubelet->end_health();
  kubelet->watch_health();
  EXPECT_TRUE(until([&] { return kubelet->health_messages() == 3; })) << "a new stream begins with the state";
  side.reset();
}

}  // namespace
}  // namespace carve::kubernetes::node
