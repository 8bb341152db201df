#include "core/request.h"

#include <gmock/gmock.h>

namespace carve {
namespace {

using testing::HasSubstr;

Request of(Bytes memory) {
  Request r;
  r.memory = PerDevice{memory};
  return r;
}

TEST(Request, must_have_a_total_that_divides_into_whole_mebibytes) {
  const struct {
    uint64_t mib;
    unsigned devices;
    bool good;
  } rows[] = {{4, 2, true},  {3, 2, false}, {9, 3, true},  {10, 3, false},
              {0, 1, false}, {1, 1, true},  {16, 16, true}};
  for (const auto& row : rows) {
    Request r;
    r.memory = InTotal{{row.mib << 20}};
    r.devices = row.devices;
    const auto checked = validated(r);
    EXPECT_EQ(checked.has_value(), row.good) << row.mib << " MiB over " << row.devices;
    if (checked) continue;
    EXPECT_THAT(checked.error().message, HasSubstr("multiple of " + std::to_string(row.devices) + " MiB"));
  }
}

TEST(Request, is_rejected_by_each_rule_with_a_message_that_names_the_value) {
  struct Row {
    const char* message;
    void (*breaks)(Request&);
  };
  const Row rows[] = {
      {"too little", [](Request& r) { r.memory = PerDevice{1023_KiB}; }},
      {"has no memory", [](Request& r) { r.memory = std::monostate{}; }},
      {"above 0%", [](Request& r) { r.memory = OfUsable{{10001}}; }},
      {"0 devices", [](Request& r) { r.devices = 0; }},
      {"17 devices", [](Request& r) { r.devices = 17; }},
      {"at most 100%", [](Request& r) { r.share = {10001}; }},
      {"whole devices", [](Request& r) { r.exclusive = true; }},
      {"one device is selected", [](Request& r) { r.device = Uuid{}, r.devices = 2; }},
      {"'../x'", [](Request& r) { r.name = "../x"; }},
      {"65 models are given", [](Request& r) { r.models.assign(65, "A10"); }},
      {"'' is not a valid model", [](Request& r) { r.models = {""}; }},
      {"65 labels",
       [](Request& r) {
         for (int i = 0; i < 65; ++i) r.labels.emplace(std::to_string(i), "b");
       }},
      {"is not a valid label's value",
       [](Request& r) {
         r.labels = {{"a", "b\n"}};
       }},
      {"is not a valid account", [](Request& r) { r.account.assign(254, 'x'); }},
      {"s001 belongs to a container", [](Request& r) { r.slot = ContainerSlot{1}; }},
      {"lifetime 'explicit'", [](Request& r) { r.holder.claim = "u"; }},
      {"holder.claim: ''",
       [](Request& r) {
         r.holder.claim = "";
         r.lifetime = Lifetime::until_deleted;
       }},
      {"128 characters", [](Request& r) { r.request_id.assign(129, 'x'); }},
  };
  EXPECT_TRUE(validated(of(1_MiB)));
  for (const Row& row : rows) {
    Request r = of(1_GiB);
    row.breaks(r);
    const auto checked = validated(r);
    ASSERT_FALSE(checked) << row.message;
    EXPECT_THAT(checked.error().message, HasSubstr(row.message));
    EXPECT_EQ(checked.error().kind, FailureKind::invalid_argument);
  }
}

Request placed(std::vector<PlacedPart> parts) {
  Request r;
  r.placed = std::move(parts);
  return r;
}

TEST(Request, can_have_different_parts_that_were_placed_elsewhere) {
  const auto r = validated(placed({{Uuid{{1}}, 2_GiB, {3000}}, {Uuid{{2}}, 1_GiB, {100}}}));
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->devices, 2u);
  EXPECT_EQ(r->isolated(), Isolation::memory_and_compute);
  EXPECT_EQ(validated(placed({{Uuid{{1}}, 2_GiB, {}}}))->isolated(), Isolation::memory);
  Request whole = placed({{Uuid{{1}}, {}, {}}});
  whole.exclusive = true;
  EXPECT_TRUE(validated(whole));
}

TEST(Request, with_placed_parts_is_rejected_by_each_rule_with_a_message) {
  const struct {
    const char* message;
    void (*breaks)(Request&);
  } rows[] = {
      {"leave them and the strategy out", [](Request& r) { r.memory = PerDevice{1_GiB}; }},
      {"leave them and the strategy out", [](Request& r) { r.share = {100}; }},
      {"leave them and the strategy out", [](Request& r) { r.device = Uuid{}; }},
      {"leave them and the strategy out", [](Request& r) { r.strategy = Strategy::spread; }},
      {"occurs twice", [](Request& r) { r.placed[1].device = r.placed[0].device; }},
      {"placed[1]: 1023 KiB", [](Request& r) { r.placed[1].memory = 1023_KiB; }},
      {"at most 100%", [](Request& r) { r.placed[0].share = {10001}; }},
      {"placed[1]: give a compute share on each", [](Request& r) { r.placed[1].share = {}; }},
      {"leave out the compute share", [](Request& r) { r.exclusive = true; }},
      {"3 requested, but 2 parts placed", [](Request& r) { r.devices = 3; }},
      {"17 parts",
       [](Request& r) {
         for (uint8_t i = 3; i < 18; ++i) r.placed.push_back({Uuid{{i}}, 1_GiB, {100}});
       }},
  };
  for (const auto& row : rows) {
    Request r = placed({{Uuid{{1}}, 2_GiB, {3000}}, {Uuid{{2}}, 1_GiB, {100}}});
    row.breaks(r);
    const auto checked = validated(r);
    ASSERT_FALSE(checked) << row.message;
    EXPECT_THAT(checked.error().message, HasSubstr(row.message));
  }
}

Request with(std::vector<PartRequest> parts) {
  Request r;
  r.devices = static_cast<unsigned>(parts.size());
  r.parts = std::move(parts);
  return r;
}

TEST(Request, can_have_parts_of_different_amounts) {
  Device d;
  d.native = 1000_MiB;
  const auto r = validated(with({{PerDevice{2_GiB}, {3000}}, {OfUsable{{5000}}, {100}}}));
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->isolated(), Isolation::memory_and_compute);
  EXPECT_EQ(need(*r, 0, d), 2_GiB);
  EXPECT_EQ(need(*r, 1, d), 500_MiB);
  EXPECT_EQ(share_of(*r, 1), Share{100});
  EXPECT_EQ(validated(with({{PerDevice{2_GiB}, {}}, {PerDevice{1_GiB}, {}}}))->isolated(), Isolation::memory);
}

TEST(Request, with_parts_is_rejected_by_each_rule_with_a_message) {
  const struct {
    const char* message;
    void (*breaks)(Request&);
  } rows[] = {
      {"leave out other memory", [](Request& r) { r.memory = PerDevice{1_GiB}; }},
      {"leave out other memory", [](Request& r) { r.share = {100}; }},
      {"leave out other memory", [](Request& r) { r.exclusive = true; }},
      {"one device is selected", [](Request& r) { r.device = Uuid{}; }},
      {"parts[1]: 1023 KiB", [](Request& r) { r.parts[1].memory = PerDevice{1023_KiB}; }},
      {"parts[1]: a part of", [](Request& r) { r.parts[1].memory = OfUsable{{10001}}; }},
      {"parts[1]: the compute share", [](Request& r) { r.parts[1].share = {10001}; }},
      {"parts[1]: give a compute share on each", [](Request& r) { r.parts[1].share = {}; }},
      {"3 requested, but 2 parts given", [](Request& r) { r.devices = 3; }},
      {"17 are given", [](Request& r) { r.parts.resize(17, r.parts[0]); }},
  };
  for (const auto& row : rows) {
    Request r = with({{PerDevice{2_GiB}, {3000}}, {PerDevice{1_GiB}, {100}}});
    row.breaks(r);
    const auto checked = validated(r);
    ASSERT_FALSE(checked) << row.message;
    EXPECT_THAT(checked.error().message, HasSubstr(row.message));
  }
}

TEST(Request, has_a_name_that_can_become_a_file_a_cgroup_and_a_CDI_device) {
  for (const char* good : {"a", "0", "train-7", "x--"}) EXPECT_TRUE(is_name(good)) << good;
  for (const char* bad : {"", "-a", "A", "a.b", "a/b", "..", "a b", "\xc3\xa9"})
    EXPECT_FALSE(is_name(bad)) << bad;
  EXPECT_TRUE(is_name(std::string(63, 'a')));
  EXPECT_FALSE(is_name(std::string(64, 'a')));
}

TEST(Request, for_a_part_of_a_device_is_rounded_to_whole_mebibytes) {
  Request r;
  r.memory = OfUsable{{3333}};
  Device d;
  d.native = 1000_MiB;
  EXPECT_EQ(need(r, 0, d), 333_MiB);
  d.reserved = 100_MiB;
  EXPECT_EQ(need(r, 0, d), 299_MiB);
  r.memory = OfUsable{whole_device};
  d.native = Bytes{UINT64_MAX};
  d.reserved = {};
  EXPECT_EQ(need(r, 0, d).count, UINT64_MAX >> 20 << 20);
}

TEST(Uuid, is_parsed_as_it_is_written) {
  const char* written = "GPU-0123abcd-4567-89ab-cdef-00112233ffee";
  const auto uuid = parse_uuid(written);
  ASSERT_TRUE(uuid);
  EXPECT_EQ(text(*uuid), written);
  EXPECT_EQ(uuid->bytes[0], 0x01);
  EXPECT_EQ(uuid->bytes[15], 0xee);
  for (const char* bad :
       {"", "GPU-", "GPU-0123abcd-4567-89ab-cdef-00112233ffe", "GPU-0123abcd-4567-89ab-cdef-00112233ffeg",
        "MIG-0123abcd-4567-89ab-cdef-00112233ffee", "GPU-0123abcd+4567-89ab-cdef-00112233ffee"})
    EXPECT_FALSE(parse_uuid(bad)) << bad;
}

TEST(Words, of_settings_are_parsed_as_they_are_written) {
  for (const auto p : {Policy::fixed_share, Policy::guaranteed_burst_share, Policy::native_burst_share})
    EXPECT_EQ(parse<Policy>(text(p)), p);
  for (const auto s : {Strategy::binpack, Strategy::spread}) EXPECT_EQ(parse<Strategy>(text(s)), s);
  for (const auto i : {Isolation::none, Isolation::memory, Isolation::memory_and_compute})
    EXPECT_EQ(parse<Isolation>(text(i)), i);
  for (const auto c : {LatencyClass::batch, LatencyClass::latency})
    EXPECT_EQ(parse<LatencyClass>(text(c)), c);
  EXPECT_FALSE(parse<Policy>("Fixed-Share"));
}

TEST(Words, of_node_strategies_are_those_that_the_message_lists) {
  EXPECT_EQ(node_strategy_names(), "binpack or spread");
  EXPECT_EQ(parse_node_strategy("binpack"), Strategy::binpack);
  EXPECT_EQ(parse_node_strategy("spread"), Strategy::spread);
  for (const char* other : {"first-fit", "best-fit", "fgd", "carve", "lookahead", "best", ""})
    EXPECT_FALSE(parse_node_strategy(other)) << other;
}

}  // namespace
}  // namespace carve
