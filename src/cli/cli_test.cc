#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "cli/amounts.h"
#include "cli/coverage.h"
#include "cli/messages.h"
#include "cli/object_output.h"
#include "cli/slice_events.h"
#include "cli/slice_options.h"
#include "cli/time_span.h"
#include "cli/top_view.h"
#include "cli/user_devices.h"
#include "wire/api/slice.h"

namespace carve::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(EventsOfSlice, returns_the_events_of_the_last_slice_with_the_name) {
  const std::vector<api::Event> events = {{1, "a", 7, "granted"},
                                          {2, "b", 8, "granted"},
                                          {3, "a", 7, "ended"},
                                          {4, "a", 9, "granted"},
                                          {5, "", 0, "policy set"}};
  const auto times_of = [&](const char* name, bool all_lives) {
    std::vector<uint64_t> out;
    for (const api::Event& event : events_of_slice(events, name, all_lives)) out.push_back(event.time_ns);
    return out;
  };
  EXPECT_THAT(times_of("a", false), ElementsAre(4));
  EXPECT_THAT(times_of("a", true), ElementsAre(1, 3, 4));
  EXPECT_THAT(times_of("b", false), ElementsAre(2));
  EXPECT_THAT(times_of("c", true), testing::IsEmpty());
}

TEST(TimeSpan, uses_the_options_unit_if_it_has_none) {
  EXPECT_EQ(parse_time_span("90s")->count(), 90);
  EXPECT_EQ(parse_time_span("90")->count(), 90);
  EXPECT_EQ(parse_time_span("10m")->count(), 600);
  EXPECT_EQ(parse_time_span("2h")->count(), 7200);
  EXPECT_EQ(parse_time_span("30", 'd'), parse_time_span("30d"));
  EXPECT_EQ(parse_time_span("3650d"), max_time_span);
  EXPECT_EQ(check_time_span("3651d"), "'3651d' exceeds the maximum of 3650 days");
  for (const char* bad : {"", "s", "-1s", "+1s", "1.5h", "1w", "1 m", "1ms", "1234567890s", "0x1", "1m1s"})
    EXPECT_FALSE(parse_time_span(bad)) << bad;
  EXPECT_EQ(check_time_span("1w"), "'1w' is not a duration such as 90s, 10m, 2h or 30d");
}

TEST(Request, accepts_sizes_shares_and_percentages_as_typed) {
  auto r = to_request({.memory = "4GiB", .compute = "12.5%"});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->amounts.memory_bytes, 4ull << 30);
  EXPECT_EQ(r->amounts.share_bp, 1250u);
  r = to_request({.memory = "50%"});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->amounts.memory_bp, 5000u);
  EXPECT_FALSE(r->amounts.memory_bytes);
  r = to_request({.total_memory = "8GiB", .devices = 2});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->amounts.total_memory_bytes, 8ull << 30);
  ASSERT_TRUE(to_request({.exclusive = true}));
}

TEST(Request, accepts_parts_that_differ) {
  const auto r = to_request({.parts = "8GiB:30%,50%:10%"});
  ASSERT_TRUE(r) << r.error();
  EXPECT_EQ(r->amounts.parts, *parse_parts("8GiB:30%,50%:10%"));
  EXPECT_EQ(r->amounts.device_count(), 2u);
  EXPECT_TRUE(to_request({.parts = "8GiB:30%,4GiB:10%", .isolation = "memory+compute"}));
}

TEST(Request, reports_the_option_the_value_and_an_example_when_invalid) {
  const struct {
    SliceOptions options;
    const char* says;
  } rows[] = {
      {{.memory = "12X"}, "--memory: '12X' is not a size; try 4GiB"},
      {{.memory = "4096"}, "--memory: '4096' has no unit"},
      {{.memory = "101%"}, "--memory: '101%' is not between"},
      {{.memory = "1GiB", .compute = "30"}, "--compute: '30' is not a share; try 30%"},
      {{}, "no memory is given"},
      {{.memory = "1GiB", .total_memory = "2GiB"}, "give only one of them"},
      {{.memory = "1GiB", .memory_units = 2}, "give only one of them"},
      {{.memory = "1GiB", .labels = {"a"}}, "--label: 'a' must be KEY=VALUE"},
      {{.memory = "1GiB", .labels = {"a=1", "a=2"}},
       "--label: 'a=2' conflicts with another --label with the same key"},
      {{.memory = "1GiB", .exclusive = true}, "--exclusive takes whole devices"},
      {{.memory = "1GiB", .isolation = "memory+compute"}, "needs a share; add --compute 30%"},
      {{.parts = "8GiB:30%,4Gib:10%"}, "--parts: part 2 '4Gib:10%': memory '4Gib' is not a size; try 4GiB"},
      {{.parts = "8GiB:30%,4GiB:x"}, "--parts: part 2 '4GiB:x': share 'x' is not a share; try 30%"},
      {{.parts = "8GiB:30%,4GiB"}, "--parts: part 2 has no share, but part 1 has one; give a share for each"},
      {{.memory = "1GiB", .parts = "8GiB,4GiB"},
       "--parts already sets the devices and the memory and share of each; leave out --memory"},
      {{.total_memory = "1GiB", .parts = "8GiB"}, "leave out --total-memory"},
      {{.compute = "30%", .parts = "8GiB"}, "leave out --compute"},
      {{.parts = "8GiB", .devices = 2}, "leave out --devices"},
      {{.parts = "8GiB", .exclusive = true}, "leave out --exclusive"},
      {{.parts = "8GiB", .memory_units = 2}, "leave out --gpu-mem"},
      {{.parts = "8GiB,4GiB", .isolation = "memory+compute"}, "needs a share of each part"},
  };
  for (const auto& row : rows) {
    const auto r = to_request(row.options);
    ASSERT_FALSE(r) << row.says;
    EXPECT_THAT(r.error(), HasSubstr(row.says));
  }
}

TEST(Change, contains_only_the_typed_options) {
  const auto c = to_change({.compute = "40%", .latency = true});
  ASSERT_TRUE(c);
  EXPECT_EQ(c->share_bp, 4000u);
  EXPECT_EQ(c->latency_class, LatencyClass::latency);
  EXPECT_FALSE(c->memory_bytes || c->policy);
  EXPECT_EQ(to_change({.memory = "6GiB", .batch = true})->latency_class, LatencyClass::batch);
  const struct {
    ChangeOptions options;
    const char* says;
  } rows[] = {
      {{}, "no change is given"},
      {{.memory = "50%"}, "--memory: '50%'"},
      {{.compute = "0%"}, "--compute: '0%'"},
      {{.latency = true, .batch = true}, "give only one"},
  };
  for (const auto& row : rows) {
    const auto refused = to_change(row.options);
    ASSERT_FALSE(refused) << row.says;
    EXPECT_THAT(refused.error(), HasSubstr(row.says));
  }
}

TEST(Request, has_a_unique_id) { EXPECT_NE(new_request_id(), new_request_id()); }

TopView two_slices() {
  TopView view;
  view.agent = {.version = "0.1.0", .simulated = "a10x1"};
  view.devices.devices.push_back({.index = 0,
                                  .uuid = "GPU-0",
                                  .name = "NVIDIA A10",
                                  .simulated = true,
                                  .health = {},
                                  .usable_bytes = 20ull << 30,
                                  .granted_bytes = 15ull << 30,
                                  .free_bytes = 5ull << 30,
                                  .slices = 2,
                                  .max_slices = 16});
  api::Slice a{.name = "a", .state = SliceState::running, .command = "train", .isolation = Isolation::memory};
  a.parts.push_back({.uuid = "GPU-0", .quota_bytes = 10ull << 30, .charged_bytes = 5ull << 30});
  api::Slice b{.name = "b", .state = SliceState::running, .isolation = Isolation::none};
  b.parts.push_back(
      {.uuid = "GPU-0", .quota_bytes = 5ull << 30, .charged_bytes = 5ull << 30, .share_bp = 3000});
  view.slices.slices = {a, b};
  return view;
}

TEST(Top, draws_the_bar_divided_into_its_slices) {
  const std::string text = render(two_slices(), {.width = 106});
  // The bar has 80 cells. Slice a has half of them and uses half of those; b has a quarter and uses all of
  // it; the rest is free.
  EXPECT_THAT(text, HasSubstr("MEM [" + std::string(20, '#') + std::string(20, '=') + std::string(20, '#') +
                              std::string(20, '.') + "] 75.0% granted"));
  EXPECT_THAT(text, HasSubstr("(simulated)"));
  EXPECT_THAT(text, HasSubstr("5 GiB of 10 GiB"));
  EXPECT_THAT(text, HasSubstr("30%"));
}

// Memory that is used outside of slices, or granted to slices that the caller does not see, is not drawn as
// free.
TEST(Top, shows_memory_that_others_use) {
  TopView view = two_slices();
  view.slices.slices.pop_back();
  api::Device& device = view.devices.devices[0];
  device.used_in_slices_bytes = 10ull << 30;
  view.slices.slices[0].parts[0].used_bytes = 5ull << 30;
  device.used_outside_slices_bytes = 2ull << 30;
  const std::string text = render(view, {.width = 106});
  EXPECT_THAT(text, HasSubstr("MEM [" + std::string(20, '#') + std::string(20, '=') + std::string(20, '#') +
                              std::string(8, '!') + std::string(12, '.') + "]"));
  EXPECT_THAT(text,
              HasSubstr("20 GiB usable: 15 GiB granted, 10 GiB of it used, 2 GiB used outside of slices, "
                        "3 GiB free"));
  device.used_outside_slices_bytes = 50ull << 30;
  EXPECT_THAT(render(view, {.width = 106}), HasSubstr(std::string(20, '!') + "]"));
  EXPECT_THAT(render(view, {.width = 106}), HasSubstr(" 0 B free"));
}

// As above, but both shares are enforced and measured.
TopView two_shares() {
  TopView view = two_slices();
  view.devices.devices[0].policy = {Policy::guaranteed_burst_share, Policy::fixed_share, {"a", "b"}};
  view.devices.devices[0].compute = Enforcement{EnforcementLevel::library, "", {}};
  view.devices.devices[0].commitment = Commitment::tight;
  view.devices.devices[0].arbitration = {.idle_1s_bp = 2500};
  const struct {
    uint32_t share_bp, had_bp;
  } had[] = {{6800, 5000}, {3000, 2500}};
  for (size_t i = 0; i < 2; ++i) {
    api::Slice& s = view.slices.slices[i];
    s.isolation = Isolation::memory_and_compute;
    s.enforcement.compute.level = EnforcementLevel::library;
    s.parts[0].share_bp = had[i].share_bp;
    s.parts[0].compute = api::PartCompute{.granted_bp = had[i].share_bp,
                                          .achieved_1s_bp = had[i].had_bp,
                                          .achieved_60s_bp = had[i].had_bp + 100,
                                          .waiting_ns = 3'200'000'000,
                                          .throttled_ns = 12'000'000,
                                          .burst_ns = 7'000,
                                          .wait_p50_ns = 850'000,
                                          .wait_p99_ns = 5'100'000};
  }
  return view;
}

TEST(Top, shows_each_slices_share_of_the_last_second_and_the_idle_rest) {
  const std::string text = render(two_shares(), {.width = 106});
  EXPECT_THAT(text, HasSubstr("GPU [" + std::string(40, '#') + std::string(20, '%') + std::string(20, '.') +
                              "] 25.0% idle"));
  for (const char* said : {"fixed-share (guaranteed-burst-share desired)", "tight", "memory+compute", "68%",
                           "50.0%", "51.0%", "3.20s", "12.0ms"})
    EXPECT_THAT(text, HasSubstr(said));
  const std::string wide = render(two_shares(), {.width = 160});
  for (const char* said : {"BURST", "7us", "WAIT p50", "850us", "5.1ms"}) EXPECT_THAT(wide, HasSubstr(said));
}

TEST(Top, shows_what_slices_lost_to_each_other) {
  TopView view = two_shares();
  auto& first = *view.slices.slices[0].parts[0].compute;
  first.slowdown_60s_bp = 17'600;
  first.waits_60s = {{"b", 8'100'000'000}, {"another user's slice", 4'000'000'000}, {"c", 3}, {"d", 2}};
  view.slices.slices[1].parts[0].compute->waits_60s = {{"a", 2'000'000'000}};
  const std::string text = render(view, {.width = 130});
  EXPECT_THAT(text,
              HasSubstr(fmt::format("  waited in the last minute: {} 8.10s for b, 4.00s for another user's "
                                    "slice, 1us for c; {} 2.00s for a\n",
                                    view.slices.slices[0].name, view.slices.slices[1].name)));
  EXPECT_THAT(render(view, {.width = 80}), AllOf(HasSubstr("SLOWDOWN"), HasSubstr("1.8x")));
  EXPECT_THAT(render(two_shares(), {.width = 130}), Not(HasSubstr("waited in")));
  first.slowdown_60s_bp = 10'000'000;
  EXPECT_THAT(render(view, {.width = 80}), HasSubstr("1000x"));
}

TEST(Top, fits_each_column_except_the_last_into_100_columns) {
  std::istringstream lines(render(two_shares(), {.width = 100}));
  std::vector<std::string> headings;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  NAME")) headings.push_back(line);
  ASSERT_EQ(headings.size(), 1u);
  for (const char* heading : {"MEMORY", "ISOLATION", "SHARE", "1s", "SLOWDOWN", "WAITED", "STATE", "COMMAND"})
    EXPECT_THAT(headings[0], HasSubstr(heading));
}

TEST(Top, never_shows_an_unenforced_share_as_enforced) {
  TopView view = two_shares();
  const Enforcement none{EnforcementLevel::none, "slices without a share also use the device", {"c"}};
  view.devices.devices[0].compute = view.slices.slices[0].enforcement.compute = none;
  view.devices.devices[0].arbitration.reset();
  view.slices.slices[0].parts[0].compute.reset();
  const std::string text = render(view, {.width = 106});
  EXPECT_THAT(text, HasSubstr("shares are not enforced: slices without a share also use the device: c"));
  EXPECT_THAT(text, HasSubstr("memory only"));
  EXPECT_THAT(text, HasSubstr("GPU [" + std::string(54, '=')));
}

TEST(IsolationColumn, shows_the_requested_isolation_of_an_ended_slice) {
  api::Slice slice;
  slice.isolation = Isolation::memory_and_compute;
  EXPECT_EQ(isolation_column(slice), "memory only");
  slice.state = SliceState::ended;
  EXPECT_EQ(isolation_column(slice), "memory+compute");
}

TEST(Top, fits_into_the_screen) {
  TopView view = two_slices();
  view.slices.slices[0].name = std::string(60, 'n');
  view.slices.slices[0].command = std::string(300, 'c');
  for (unsigned width : {60u, 80u, 120u, 200u}) {
    std::istringstream lines(render(view, {.width = width}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), width) << line;
  }
}

TEST(VisibleDevices, prefers_the_first_devices_of_the_list) {
  EXPECT_THAT(preferred_lists({"b", "a"}, 1), ElementsAre("b", "b,a"));
  EXPECT_THAT(preferred_lists({"b", "a", "c"}, 2), ElementsAre("b,a", "b,a,c"));
  EXPECT_THAT(preferred_lists({"b"}, 2), testing::IsEmpty());
  EXPECT_EQ(too_few_named("1", 1, 2),
            "--devices 2: CUDA_VISIBLE_DEVICES '1' lists 1 device of this node; list 2 or more, unset it, or "
            "use --device");
  EXPECT_EQ(too_few_named("", 0, 1),
            "CUDA_VISIBLE_DEVICES '' matches no device of this node; set it to an index or a UUID, unset it, "
            "or use --device");
}

TEST(Terminal, cuts_and_pads_by_visible_columns) {
  EXPECT_EQ(cut("abcdefgh", 6), "abc...");
  EXPECT_EQ(cut("äöüäöüäö", 6), "äöü...");
  EXPECT_EQ(columns("\x1b[31mäb\x1b[0m"), 2u);
  EXPECT_EQ(age(3'723'000'000'000), "1h02m");
  EXPECT_EQ(span(0), "0");
  EXPECT_EQ(span(85'400), "85us");
  EXPECT_EQ(span(3'240'000), "3.2ms");
  EXPECT_EQ(span(1'500'000'000), "1.50s");
  EXPECT_EQ(span(61'000'000'000), "1m01s");
  EXPECT_EQ(percent(2994), "29.9%");
  EXPECT_EQ(percent(9996), "100.0%");
}

TEST(Terminal, ignores_control_characters_in_texts_of_other_users) {
  EXPECT_EQ(harmless("a\x1b]0;title\x07z\x7f\n"), "a?]0;title?z??");
  EXPECT_EQ(harmless("\xc2\x9b"
                     "31m caf\xc3\xa9"),
            "?31m caf\xc3\xa9");
  TopView view = two_slices();
  view.slices.slices[0].command = "\x1b[2J";
  EXPECT_EQ(render(view, {.width = 120}).find('\x1b'), std::string::npos);
}

TEST(Coverage, matches_whole_names) {
  EXPECT_TRUE(matches("cuMemAlloc*", "cuMemAllocPitch_v2"));
  EXPECT_TRUE(matches("cu*Create*", "cuCtxCreate_v4"));
  EXPECT_FALSE(matches("cuMemAlloc", "cuMemAlloc_v2"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*b*c", "aXbXbc"));
  EXPECT_FALSE(matches("a*b", "ab_"));
  EXPECT_FALSE(matches("", "a"));
}

TEST(Coverage, matches_many_stars_as_fast_as_one) {
  std::string stars;
  for (int i = 0; i < 200; ++i) stars += "*c";
  EXPECT_FALSE(matches(stars, std::string(100, 'c')));
  EXPECT_TRUE(matches(stars, std::string(300, 'c')));
}

TEST(Coverage, lists_only_open_and_unknown_entry_points) {
  const auto rows = parse_coverage(
      "# comment\ncuMemAlloc_v2 hooked\ncuMemAllocHost* exempt  host memory\n\ncuMemAllocAsync open "
      "later\n");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].reason, "host memory");
  EXPECT_THAT(
      uncovered({"cuMemAlloc_v2", "cuMemAllocHost_v2", "cuMemAllocAsync", "cuMemAllocMagic", "cuInit"}, rows),
      ElementsAre("cuMemAllocAsync", "cuMemAllocMagic"));
}

TEST(Coverage, reads_the_exports_of_an_elf_file_and_rejects_a_broken_one) {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  std::string file{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  file.resize(std::min<size_t>(file.size(), 8 << 20));
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    std::string broken = file.substr(0, i % 3 == 0 ? random() % 5000 : file.size());
    for (int n = 0; n < 8 && !broken.empty(); ++n)
      broken[random() % std::min<size_t>(broken.size(), 4096)] = static_cast<char>(random());
    (void)exported_names(broken);
  }
  EXPECT_TRUE(exported_names("not an elf").empty());
}

TEST(ObjectOutput, writes_yaml_with_the_values_of_the_json) {
  EXPECT_EQ(
      yaml_of(
          R"({"kind":"Service","metadata":{"name":"a","labels":{},"on":"on"},"spec":{"command":["sh","-c","a: b"],"port":80,
                      "version":"1.0","empty":"","stopped":false,"lists":[[1,2],{"a":1}],"none":[]}})"),
      R"(kind: Service
metadata:
  name: a
  labels: {}
  "on": "on"
spec:
  command:
    - sh
    - "-c"
    - "a: b"
  port: 80
  version: "1.0"
  empty: ""
  stopped: false
  lists:
    -
      - 1
      - 2
    -
      a: 1
  none: []
)");
  EXPECT_EQ(yaml_of("no json"), "no json");
  EXPECT_EQ(yaml_of(R"({"a":"x\ny"})"), "a: |-\n  x\n  y\n");
}

TEST(Amounts, shows_six_decimals_as_two_or_as_four_below_one) {
  const std::pair<const char*, const char*> rows[] = {
      {"3.000000", "3.00"},   {"3.603889", "3.60"},    {"7.207778", "7.21"},   {"0.000000", "0.00"},
      {"1.015000", "1.02"},   {"1.025000", "1.02"},    {"1.025001", "1.03"},   {"1.004999", "1.00"},
      {"9.995001", "10.00"},  {"99.995000", "100.00"}, {"0.003333", "0.0033"}, {"0.000050", "0.0000"},
      {"0.000051", "0.0001"}, {"0.999950", "1.0000"},  {"12.000001", "12.00"}, {"x", "x"},
      {"1.5", "1.5"},
  };
  for (const auto& [given, shown] : rows) EXPECT_EQ(shown_amount(given), shown) << given;
}

}  // namespace
}  // namespace carve::cli
