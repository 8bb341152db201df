#include "controller/objects/stored_check.h"

#include <gtest/gtest.h>

#include "controller/objects/kind_table.h"
#include "objects/service_object.h"

namespace carve::controller {
namespace {

Object stored(objects::Kind kind, const std::string& spec, const std::string& status = "{}") {
  return {.key = {.kind = kind, .name = "a"},
          .spec = row_of(kind).read_spec(spec),
          .status = row_of(kind).read_status(status)};
}

TEST(StoredCheck, accepts_fields_of_other_versions_and_an_unreadable_status) {
  using enum objects::Kind;
  for (const objects::Kind kind : {service, node, pool, queue, job, budget, ray_cluster})
    EXPECT_TRUE(check_stored(stored(kind, R"({"later":[1]})"))) << objects::text_of(kind).kind;
  EXPECT_TRUE(check_stored(stored(queue, "{}", "[1")));
}

TEST(StoredCheck, rejects_an_unreadable_spec) {
  for (const objects::KindText& kind : objects::kinds)
    for (const char* spec : {"", "[1", "7"}) {
      const auto checked = check_stored(stored(kind.value, spec));
      ASSERT_FALSE(checked) << kind.kind << " " << spec;
      EXPECT_EQ(checked.error().kind, FailureKind::failed_precondition);
    }
}

TEST(StoredCheck, rejects_a_spec_with_invalid_amounts) {
  using enum objects::Kind;
  EXPECT_FALSE(check_stored(stored(service, R"({"gpu":{"memory":"much"}})")));
  EXPECT_FALSE(check_stored(stored(application, R"({"gpu":{"type":"mGPU","compute":"much"}})")));
  EXPECT_FALSE(check_stored(stored(tariff, R"({"pricePerGpuHour":"much"})")));
  EXPECT_FALSE(check_stored_revision("u", R"({"gpu":{"memory":"much"}})"));
  EXPECT_TRUE(check_stored_revision("u", R"({"gpu":{"memory":"4GiB"},"later":1})"));
}

}  // namespace
}  // namespace carve::controller
