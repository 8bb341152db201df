#include "controller/runtime/request_totals.h"

#include <gtest/gtest.h>

namespace carve::controller {
namespace {

RequestCounters counted(uint64_t requests) {
  return {.requests = requests, .responses = {0, requests, 0, 0, 0, 0}};
}

TEST(RequestTotals, do_not_decrease_when_workers_are_replaced) {
  RequestTotals totals;
  totals.update({{7, {{"a", counted(10)}}}});
  EXPECT_EQ(totals.totals(), (CountersByProxy{{"a", counted(10)}}));
  totals.update({{7, {{"a", counted(15)}}}, {8, {{"a", counted(1)}}}});
  EXPECT_EQ(totals.totals(), (CountersByProxy{{"a", counted(16)}}));
  totals.update({{8, {{"a", counted(4)}}}});
  EXPECT_EQ(totals.totals(), (CountersByProxy{{"a", counted(19)}}));
  totals.update({});
  EXPECT_EQ(totals.totals(), (CountersByProxy{{"a", counted(19)}}));
}

TEST(RequestTotals, recognize_a_new_worker_with_a_reused_process_id) {
  RequestTotals totals;
  totals.update({{7, {{"a", counted(10)}}}});
  totals.update({{7, {{"a", counted(2)}}}});
  EXPECT_EQ(totals.totals(), (CountersByProxy{{"a", counted(12)}}));
}

TEST(RequestTotals, continue_a_sum_that_wraps_at_32_bits) {
  const auto sum = [](uint64_t ms) { return RequestCounters{.requests = 1, .latency_sum_ms = ms}; };
  RequestTotals totals;
  totals.update({{7, {{"a", sum(UINT32_MAX - 5)}}}});
  totals.update({{7, {{"a", sum(10)}}}});
  EXPECT_EQ(totals.totals().at("a").latency_sum_ms, uint64_t{UINT32_MAX} + 11);
  totals.update({{7, {{"a", sum(12)}}}, {8, {{"a", sum(3)}}}});
  EXPECT_EQ(totals.totals().at("a").latency_sum_ms, uint64_t{UINT32_MAX} + 16);
}

TEST(RequestTotals, begin_at_zero_for_a_dropped_service) {
  RequestTotals totals;
  totals.update({{7, {{"a", counted(10)}, {"b", counted(1)}}}});
  totals.update({{8, {{"b", counted(1)}}}});
  totals.forget("a");
  EXPECT_EQ(totals.totals(), (CountersByProxy{{"b", counted(2)}}));
  totals.update({{8, {{"a", counted(3)}, {"b", counted(1)}}}});
  EXPECT_EQ(totals.totals(), (CountersByProxy{{"a", counted(3)}, {"b", counted(2)}}));
}

}  // namespace
}  // namespace carve::controller
