#include "replay/snapshot.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

#include "replay/explain_request.h"
#include "replay/json_lines.h"

namespace carve::replay {
namespace {

using testing::HasSubstr;

// Two nodes with two devices of 80 GiB each. "a" and "b" share the first device, and "c" has a small part of
// the second node.
constexpr std::string_view fleet = R"({
  "nodes": [
    {"name": "n1", "model": "A100", "cpu_milli": 8000, "host_memory_bytes": 68719476736,
     "devices": [{"memory_bytes": 85899345920}, {"memory_bytes": 85899345920}], "links": ["X NV12", "NV12 X"]},
    {"name": "n2", "model": "A100", "devices": [{"memory_bytes": 85899345920}, {"memory_bytes": 85899345920, "trouble": "lost"}]}
  ],
  "held": [
    {"name": "a", "node": "n1", "devices": [0], "memory_bytes": 34359738368, "share_bp": 9000, "cpu_milli": 2000},
    {"name": "b", "node": "n1", "devices": [0], "memory_bytes": 1073741824, "share_bp": 500, "application": "web"},
    {"name": "c", "node": "n2", "devices": [0], "memory_bytes": 1073741824, "share_bp": 500}
  ]
})";

std::string with(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Snapshot, is_read_with_every_slice_at_its_position) {
  const auto s = parse_snapshot(fleet, "f");
  ASSERT_TRUE(s) << s.error().message;
  const Scene scene(*s, Strategy::binpack);
  const place::Fleet& f = scene.engine.fleet();
  EXPECT_EQ(f.devices(0)[0].free, 47_GiB);
  EXPECT_EQ(f.devices(0)[0].free_share.basis_points, 500u);
  EXPECT_EQ(f.devices(0)[0].isolated, 2);
  EXPECT_EQ(f.node(0).cpu_free, 6000u);
  EXPECT_TRUE(f.devices(1)[1].sick);
  ASSERT_NE(f.topology(0), nullptr);
  EXPECT_EQ(f.topology(0)->link(0, 1), place::Link::nvlink);
}

TEST(Snapshot, can_have_uuids_of_devices_and_settings_of_nodes) {
  constexpr std::string_view cluster = R"({
  "nodes": [
    {"name": "n1", "model": "A10", "mode": "memory", "policy": "native-burst-share",
     "devices": [{"uuid": "GPU-1", "memory_bytes": 85899345920}, {"uuid": "GPU-2", "memory_bytes": 85899345920}]},
    {"name": "n2", "model": "A10", "mode": "none", "devices": [{"uuid": "GPU-3", "memory_bytes": 85899345920}]}
  ],
  "held": [{"name": "a", "node": "n1", "devices": ["GPU-2"], "memory_bytes": 34359738368}]
})";
  const auto s = parse_snapshot(cluster, "f");
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->held[0].assignment.devices, 2u);
  const Scene scene(*s, Strategy::binpack);
  EXPECT_TRUE(scene.engine.fleet().node(0).isolates);
  EXPECT_EQ(scene.engine.fleet().node(0).policy, static_cast<uint8_t>(Policy::native_burst_share));
  EXPECT_FALSE(scene.engine.fleet().node(1).isolates);
  EXPECT_EQ(s->held[0].shape.kinds, place::NodeKinds{1} << 1)
      << "the slice may move only among nodes of its mode";
  const std::pair<const char*, const char*> wrong[] = {{R"("mode": "memory")", R"("mode": "cgpu")"},
                                                       {R"("native-burst-share")", R"("burst")"},
                                                       {R"(["GPU-2"])", R"(["GPU-3"])"}};
  const char* const messages[] = {"'cgpu' must be one of memory-and-compute, memory, none, exclusive",
                                  "'burst' must be one of fixed-share", "node n1 has no device 'GPU-3'"};
  for (size_t i = 0; i < std::size(wrong); ++i)
    EXPECT_THAT(
        parse_snapshot(with(std::string(cluster), wrong[i].first, wrong[i].second), "f").error().message,
        HasSubstr(messages[i]));
}

TEST(Snapshot, errors_have_file_line_and_field) {
  const struct {
    std::string_view from, to;
    const char* message;
  } rows[] = {
      {R"("b", "node": "n1", "devices": [0], "memory_bytes": 1073741824)",
       R"("b", "node": "n1", "devices": [0], "memory_bytes": 64424509440)",
       "f:9: held[1]: 'b' on node n1, device 0: holds 60 GiB, but the entries above leave only 48 GiB of 80 "
       "GiB"},
      {R"("memory_bytes": 1073741824, "share_bp": 500, "app)",
       R"("memory_bytes": 1073741824, "share_bp": 1500, "app)",
       "f:9: held[1]: 'b' on node n1, device 0: holds 15% of its compute, but the entries above leave only "
       "10%"},
      {R"("cpu_milli": 2000)", R"("cpu_milli": 9000)",
       "f:8: held[0]: 'a' on node n1, holds 9000m of CPU, but the entries above leave only 8000m"},
      {R"("cpu_milli": 2000)", R"("host_memory_bytes": 68719476737)",
       "of host memory, but the entries above leave only"},
      {R"("memory_bytes": 1073741824, "share_bp": 500, "app)", R"("exclusive": true, "app)",
       "device 0: the slice is exclusive, but 1 of the entries above use the device"},
      {R"("devices": [0], "memory_bytes": 34359738368, "share_bp": 9000)",
       R"("devices": [0], "exclusive": true)",
       "f:9: held[1]: 'b' on node n1, device 0: an entry above is exclusive"},
      {R"("node": "n2")", R"("node": "n3")", "f:10: held[2].node: there is no node 'n3'"},
      {R"("node": "n2", "devices": [0])", R"("node": "n2", "devices": [2])",
       "f:10: held[2].devices: node n2 has 2 devices, numbered from 0; 2 is not one of them"},
      {R"("node": "n2", "devices": [0])", R"("node": "n2", "devices": [0, 0])",
       "held[2].devices: device 0 occurs twice"},
      {R"("name": "c")", R"("name": "a")", "f:10: held[2].name: 'a' is already the name of held[0]"},
      {R"("name": "n2")", R"("name": "n1")", "nodes[1].name: 'n1' is already the name of nodes[0]"},
      {R"("share_bp": 9000)", R"("share_bp": -1)",
       "f:8: held[0].share_bp: -1 must be a whole number from 0 to 10000"},
      {R"("share_bp": 9000)", R"("share_bp": "half")", "held[0].share_bp: 'half' must be a whole number"},
      {R"("share_bp": 9000)", R"("share": 9000)",
       "f:8: held[0]: unknown field 'share'; the fields are name, node"},
      {R"("name": "a", )", "", "f:8: held[0]: 'name' is missing"},
      {R"("share_bp": 9000)", R"("share_bp": 1, "share_bp": 2)", "f:8: 'share_bp' occurs twice"},
      {R"(["X NV12", "NV12 X"])", R"(["X NV12", "SYS X"])",
       "f:4: nodes[0].links: line 3: column GPU0: GPU1 to GPU0 over the sockets' interconnect, but the "
       "opposite direction over NVLink"},
      {R"(["X NV12", "NV12 X"])", R"(["X NV12"])", "nodes[0].links: GPU1 has no line"},
      {R"("trouble": "lost")", R"("trouble": 7)", "nodes[1].devices[1].trouble: 7 is not a valid name"},
      {R"("devices": [{"memory_bytes": 85899345920}, {"memory_bytes": 85899345920, "trouble": "lost"}])",
       R"("devices": 2)", "nodes[1].devices: is not a list"},
      {R"("held": [)", R"("held": [[[[[[[[[[[[[[[[[)", "is nested deeper than 16 levels"},
      {R"("held": [)", R"("held": [,)", "f:7: invalid JSON"},
      {"\n  ]\n}", "", "invalid JSON: the text is truncated"},
  };
  for (const auto& row : rows) {
    const auto s = parse_snapshot(with(std::string(fleet), row.from, row.to), "f");
    ASSERT_FALSE(s) << row.message;
    EXPECT_THAT(s.error().message, HasSubstr(row.message));
  }
  EXPECT_THAT(parse_snapshot("", "f").error().message, HasSubstr("f:1: invalid JSON"));
  EXPECT_THAT(parse_snapshot("[]", "f").error().message, HasSubstr("f:1: the document: is not an object"));
  EXPECT_THAT(parse_snapshot(R"({"nodes": []})", "f").error().message, HasSubstr("f: has no node"));
  EXPECT_THAT(read_snapshot("/nowhere").error().message, HasSubstr("/nowhere: cannot be opened"));
}

TEST(Snapshot, allows_sixteen_isolated_slices_per_device_but_not_seventeen) {
  std::string held;
  for (int i = 0; i < 17; ++i)
    held += fmt::format(R"({}{{"name": "t{}", "node": "n", "devices": [0], "memory_bytes": 1048576}})",
                        i == 0 ? "" : ",\n", i);
  const std::string text =
      R"({"nodes": [{"name": "n", "model": "T4", "devices": [{"memory_bytes": 17179869184}]}], "held": [)" +
      held + "]}";
  EXPECT_THAT(parse_snapshot(text, "f").error().message,
              HasSubstr("f:17: held[16]: 't16' on node n, device 0: more than 16 isolated slices"));
}

TEST(Snapshot, explains_where_a_request_would_be_placed_or_why_nowhere) {
  const auto s = *parse_snapshot(fleet, "f");
  const auto said = [&](std::string_view request) {
    const auto pod = parse_request(request, models_of(s));
    EXPECT_TRUE(pod) << pod.error().message;
    const Explanation answer = explain(s, Strategy::binpack, *pod);
    EXPECT_EQ(answer.fits, answer.text.starts_with("It would be placed")) << request;
    return answer.text;
  };
  EXPECT_THAT(said("num_gpu=2,gpu_memory_mib=1024,gpu_milli=10"),
              HasSubstr("It would be placed on n1 (A100), devices 0, 1"));
  EXPECT_THAT(said("num_gpu=2,gpu_memory_mib=1024,gpu_milli=10"), HasSubstr("they are connected by NVLink"));
  // On n1's first device, 47 GiB and 5 % of the compute are free, so only the second device can serve the
  // request.
  EXPECT_THAT(said("gpu_memory_mib=40960,gpu_milli=200"),
              HasSubstr("It would be placed on n1 (A100), device 1"));
  EXPECT_THAT(
      said("num_gpu=2,gpu_memory_mib=40960,gpu_milli=200"),
      HasSubstr(
          "0/2 nodes can serve: 1 unhealthy, 1 compute; the request fits with at most 5% of the compute"));
  EXPECT_FALSE(parse_request("gpu_memory_mib=x", models_of(s)));
}

TEST(Snapshot, gives_a_plan_that_empties_devices_without_moving_slices) {
  const auto s = *parse_snapshot(fleet, "f");
  const auto plan = nlohmann::json::parse(consolidation_json(s, Strategy::binpack, 1));
  EXPECT_EQ(plan["emptied"].size(), 1u);
  EXPECT_EQ(plan["moves"].size(), 1u);
  EXPECT_EQ(plan["moves"][0]["name"], "c");
  EXPECT_EQ(plan["moves"][0]["from"]["node"], "n2");
  EXPECT_EQ(plan["moves"][0]["to"]["node"], "n1");
  EXPECT_EQ(plan["moved_bytes"], 1u << 30);
  EXPECT_THAT(
      consolidation_table(s, Strategy::binpack, 2),
      HasSubstr("1 move of 1 GiB in total would leave 1 more device empty, but no plan was found for 2. "
                "No slice was moved."));
}

// Found by fuzzing. An exclusive slice gets the smallest device's memory on each of its devices, even if that
// is 0.
TEST(Snapshot, limits_whole_devices_of_different_sizes_to_the_smallest) {
  for (const uint64_t smaller : {0u, 1u << 20}) {
    const auto s = parse_snapshot(
        fmt::format(
            R"({{"nodes": [{{"name": "n", "model": "T4", "devices": [{{"memory_bytes": {}}}, {{"memory_bytes": 2097152}}]}}],
                    "held": [{{"name": "w", "node": "n", "devices": [0, 1], "exclusive": true, "isolated": false}}]}})",
            smaller),
        "f");
    ASSERT_TRUE(s) << s.error().message;
    Pod pod;
    pod.devices = 1, pod.device_memory_mib = 1;
    EXPECT_THAT(explain(*s, Strategy::fgd_scarcity, pod).text, HasSubstr("0/1 nodes can serve"));
    const Scene scene(*s, Strategy::fgd_scarcity);
    EXPECT_EQ(scene.standing[0].assignment.memory.count, smaller);
    for (const place::DeviceState& c : scene.engine.fleet().devices(0)) EXPECT_LE(c.free, c.usable);
  }
}

// A slice that is bound to a model must not be moved to another model.
TEST(Snapshot, gives_a_plan_that_keeps_the_models_of_slices) {
  const std::string text =
      with(std::string(fleet), R"("name": "n2", "model": "A100")", R"("name": "n2", "model": "T4")");
  EXPECT_THAT(consolidation_table(*parse_snapshot(text, "f"), Strategy::binpack, 1), HasSubstr("0 moves"));
  const std::string either = with(text, R"("name": "c", )", R"("name": "c", "models": ["T4", "A100"], )");
  EXPECT_THAT(consolidation_table(*parse_snapshot(either, "f"), Strategy::binpack, 1), HasSubstr("1 move "));
}

TEST(Json, has_the_line_of_every_value) {
  const auto json = parse_json("{\n\"a\": 12\n,\n\"b\": [true,\n\n\"x\"]}", "f");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->line, 1u);
  EXPECT_EQ(json->members[0].value.line, 2u);
  EXPECT_EQ(json->members[1].value.line, 4u);
  EXPECT_EQ(json->members[1].value.items[1].line, 6u);
}

}  // namespace
}  // namespace carve::replay
