#include "controller/restart_totals.h"

#include <gtest/gtest.h>

#include "objects/service_object.h"

namespace carve::controller {
namespace {

using Replicas = std::vector<std::pair<std::string, uint32_t>>;

ObjectRegistry::Pointer service(const std::string& uid, const Replicas& replicas) {
  auto out = std::make_shared<Object>();
  out->uid = uid;
  objects::ServiceStatus status;
  for (const auto& [slice, restarts] : replicas)
    status.replica_list.push_back({.slice = slice, .restarts = restarts});
  out->status = status;
  return out;
}

TEST(RestartTotals, count_restarts_since_the_first_call) {
  RestartTotals totals;
  totals.update({service("u", {{"a-0", 5}})});
  EXPECT_EQ(totals.of("u"), 0u);
  totals.update({service("u", {{"a-0", 7}, {"a-1", 1}})});
  EXPECT_EQ(totals.of("u"), 3u);
}

TEST(RestartTotals, do_not_decrease_when_a_replica_is_replaced) {
  RestartTotals totals;
  totals.update({});
  totals.update({service("u", {{"a-0", 4}})});
  EXPECT_EQ(totals.of("u"), 4u);
  totals.update({service("u", {{"a-1", 0}})});
  EXPECT_EQ(totals.of("u"), 4u);
  totals.update({service("u", {{"a-1", 2}})});
  EXPECT_EQ(totals.of("u"), 6u);
}

TEST(RestartTotals, forget_deleted_services) {
  RestartTotals totals;
  totals.update({});
  totals.update({service("u", {{"a-0", 4}})});
  totals.update({});
  EXPECT_EQ(totals.of("u"), 0u);
}

}  // namespace
}  // namespace carve::controller
