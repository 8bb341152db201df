#include "controller/objects/typed_json.h"

#include <gtest/gtest.h>

#include "controller/objects/kind_table.h"
#include "objects/node_object.h"
#include "objects/queue_object.h"
#include "objects/service_object.h"

namespace carve::controller {
namespace {

TEST(TypedJson, has_the_json_of_its_value) {
  const TypedJson spec = objects::QueueSpec{.gpu = QueueGpu::gpu, .weight = 3};
  EXPECT_EQ(spec.json(), api::write(objects::QueueSpec{.gpu = QueueGpu::gpu, .weight = 3}));
  EXPECT_EQ(spec.as<objects::QueueSpec>().weight, 3u);
  EXPECT_TRUE(spec.is_readable());
}

TEST(TypedJson, is_an_empty_object_with_the_defaults_of_every_type_if_it_has_no_value) {
  const TypedJson none;
  EXPECT_EQ(none.json(), "{}");
  EXPECT_EQ(none.as<objects::QueueSpec>().gpu, QueueGpu::mgpu);
  EXPECT_TRUE(none.as<objects::NodeSpec>().schedulable);
  EXPECT_EQ(none, TypedJson::read<objects::NodeSpec>("{}"));
}

// A text that an earlier or later version stored is returned unchanged.
TEST(TypedJson, keeps_a_text_that_was_read_byte_for_byte) {
  const std::string stored = R"({ "later":[1], "weight":2})";
  const TypedJson spec = row_of(objects::Kind::queue).read_spec(stored);
  EXPECT_EQ(spec.json(), stored);
  EXPECT_EQ(spec.as<objects::QueueSpec>().weight, 2u);
  EXPECT_EQ(spec.as<objects::QueueSpec>().gpu, QueueGpu::mgpu);
}

// A later version may have more phases and states.
TEST(TypedJson, keeps_an_unknown_state_when_another_field_changes) {
  TypedJson status = row_of(objects::Kind::service).read_status(R"({"phase":"Resting","revision":1})");
  ASSERT_TRUE(status.is_readable());
  objects::ServiceStatus changed = status.as<objects::ServiceStatus>();
  EXPECT_EQ(text(changed.phase), "Resting");
  EXPECT_NE(changed.phase, objects::WorkloadPhase::running);
  changed.revision = 2;
  status.set(changed);
  EXPECT_NE(status.json().find(R"("phase":"Resting")"), std::string::npos) << status.json();
}

TEST(TypedJson, keeps_its_text_and_has_the_defaults_if_it_cannot_be_parsed) {
  for (const char* wrong : {"", "[1", "7", R"({"weight":"x"})"}) {
    const auto spec = TypedJson::read<objects::QueueSpec>(wrong);
    EXPECT_FALSE(spec.is_readable()) << wrong;
    EXPECT_EQ(spec.json(), wrong);
    EXPECT_EQ(spec.as<objects::QueueSpec>().weight, 1u);
  }
}

TEST(TypedJson, changes_its_text_only_with_its_value) {
  const std::string stored = R"({"later":[1],"weight":2})";
  auto spec = TypedJson::read<objects::QueueSpec>(stored);
  auto value = spec.as<objects::QueueSpec>();
  spec.set(value);
  EXPECT_EQ(spec.json(), stored);
  value.weight = 3;
  spec.set(value);
  EXPECT_EQ(spec.json(), api::write(value));
  auto wrong = TypedJson::read<objects::QueueSpec>("[1");
  wrong.set(objects::QueueSpec());
  EXPECT_EQ(wrong.json(), api::write(objects::QueueSpec()));
}

TEST(TypedJson, shares_the_value_with_copies) {
  const TypedJson spec = objects::QueueSpec();
  const TypedJson copy = spec;
  EXPECT_EQ(&spec.as<objects::QueueSpec>(), &copy.as<objects::QueueSpec>());
}

TEST(TypedJson, fails_an_invariant_when_read_as_another_type) {
  const TypedJson spec = objects::QueueSpec();
  EXPECT_DEATH((void)spec.as<objects::NodeSpec>(), "decides the type");
}

TEST(KindTable, has_the_types_of_each_kind) {
  for (const objects::KindText& kind : objects::kinds) {
    EXPECT_TRUE(row_of(kind.value).read_spec("{}").is_readable()) << kind.kind;
    EXPECT_TRUE(row_of(kind.value).read_status("{}").is_readable()) << kind.kind;
  }
  EXPECT_EQ(row_of(objects::Kind::node).read_status(R"({"gpus":2})").as<objects::NodeStatus>().gpus, 2u);
}

}  // namespace
}  // namespace carve::controller
