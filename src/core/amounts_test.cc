#include "core/amounts.h"

#include <gmock/gmock.h>

namespace carve {
namespace {

using testing::HasSubstr;

TEST(Amounts, are_converted_to_a_request) {
  const auto request = request_of({.memory_bytes = 4ull << 30,
                                   .share_bp = 3000,
                                   .spill_bytes = 1 << 20,
                                   .devices = 2,
                                   .isolation = Isolation::memory,
                                   .policy = Policy::native_burst_share,
                                   .latency_class = LatencyClass::latency,
                                   .strategy = Strategy::spread,
                                   .models = {"NVIDIA A10"}},
                                  MemoryUnit::gib);
  ASSERT_TRUE(request);
  EXPECT_EQ(std::get<PerDevice>(request->memory).memory, 4_GiB);
  EXPECT_EQ(request->share.basis_points, 3000u);
  EXPECT_EQ(request->spill, 1_MiB);
  EXPECT_EQ(request->devices, 2u);
  EXPECT_EQ(request->isolation, Isolation::memory);
  EXPECT_EQ(request->policy, Policy::native_burst_share);
  EXPECT_EQ(request->latency, LatencyClass::latency);
  EXPECT_EQ(request->strategy, Strategy::spread);
  EXPECT_THAT(request->models, testing::ElementsAre("NVIDIA A10"));
}

TEST(Amounts, give_memory_in_four_forms) {
  EXPECT_EQ(std::get<OfUsable>(request_of({.memory_bp = 5000}, MemoryUnit::gib)->memory).part.basis_points,
            5000u);
  EXPECT_EQ(std::get<InTotal>(request_of({.total_memory_bytes = 2 << 20}, MemoryUnit::gib)->memory).memory,
            2_MiB);
  const auto units = request_of({.memory_units = 3}, MemoryUnit::mib_128);
  EXPECT_EQ(std::get<PerDevice>(units->memory).memory, 384_MiB);
  EXPECT_EQ(units->memory_units, (MemoryUnits{3, MemoryUnit::mib_128}));
  EXPECT_TRUE(
      std::holds_alternative<std::monostate>(request_of({.exclusive = true}, MemoryUnit::gib)->memory));
}

TEST(Amounts, of_parts_are_converted_to_a_request) {
  const std::vector<Part> parts = *parse_parts("2 units:30%,50%:10%");
  const auto request = request_of({.spill_bytes = 1 << 20, .parts = parts}, MemoryUnit::gib);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->devices, 2u);
  ASSERT_EQ(request->parts.size(), 2u);
  EXPECT_EQ(std::get<PerDevice>(request->parts[0].memory).memory, 2_GiB);
  EXPECT_EQ(std::get<OfUsable>(request->parts[1].memory).part, Share{5000});
  EXPECT_EQ(request->parts[1].share, Share{1000});
  EXPECT_TRUE(validated(*request));
}

TEST(Amounts, of_equal_parts_equal_those_of_equal_devices) {
  for (const char* text : {"4GiB:10%,4GiB:10%", "4GiB", "3 units,3 units,3 units", "50%:1%,50%:1%"}) {
    const std::vector<Part> parts = *parse_parts(text);
    const auto request = request_of({.parts = parts}, MemoryUnit::gib);
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_TRUE(request->parts.empty()) << text;
    EXPECT_EQ(request->devices, parts.size());
    EXPECT_EQ(request->share.basis_points, parts[0].share_bp.value_or(0));
    EXPECT_EQ(request->memory_units.count, parts[0].memory_units.value_or(0));
    EXPECT_TRUE(validated(*request));
  }
}

TEST(Amounts, next_to_parts_are_rejected_by_name) {
  const struct {
    const char* field;
    Amounts amounts;
  } rows[] = {{"memory_bytes", {.memory_bytes = 1}}, {"memory_bp", {.memory_bp = 1}},
              {"memory_units", {.memory_units = 1}}, {"total_memory_bytes", {.total_memory_bytes = 1}},
              {"share_bp", {.share_bp = 1}},         {"devices", {.devices = 3}},
              {"exclusive", {.exclusive = true}}};
  for (const auto& row : rows) {
    Amounts amounts = row.amounts;
    amounts.parts = *parse_parts("8GiB:30%,4GiB:10%");
    const auto request = request_of(amounts, MemoryUnit::gib);
    ASSERT_FALSE(request) << row.field;
    EXPECT_THAT(request.error().message, HasSubstr(std::string("leave out ") + row.field));
  }
  EXPECT_TRUE(request_of({.devices = 2, .parts = *parse_parts("8GiB,4GiB")}, MemoryUnit::gib));
  EXPECT_THAT(request_of({.parts = {{}, {}}}, MemoryUnit::gib).error().message,
              HasSubstr("parts[0]: set exactly one of memory_bytes"));
  EXPECT_THAT(request_of({.parts = {{.memory_bytes = 1, .share_bp = 0}}}, MemoryUnit::gib).error().message,
              HasSubstr("parts[0]: a compute share"));
}

TEST(Amounts, that_contradict_each_other_are_rejected) {
  EXPECT_THAT(request_of({.memory_bytes = 1, .memory_units = 1}, MemoryUnit::gib).error().message,
              HasSubstr("more than once"));
  EXPECT_THAT(request_of({.memory_bytes = 1, .share_bp = 0}, MemoryUnit::gib).error().message,
              HasSubstr("above 0%"));
}

}  // namespace
}  // namespace carve
