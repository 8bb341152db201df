#include <gtest/gtest.h>

#include "objects/service_object.h"
#include "wire/api/json.h"

namespace carve::objects {
namespace {

using api::read_all;
using api::Reading;

TEST(Objects, use_lower_camel_case_fields) {
  const Service service{.api_version = std::string(api_version),
                        .metadata = {.name = "a", .namespace_ = "b"},
                        .spec = {.update = {.max_surge = 2}}};
  const std::string text = api::write(service);
  EXPECT_NE(text.find(R"("apiVersion":"carve.dev/v1")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("namespace":"b")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("update":{"maxSurge":2)"), std::string::npos) << text;
  const auto again = read_all<Service>(text, Reading::strict);
  ASSERT_TRUE(again) << again.error().front().message;
  EXPECT_EQ(api::write(*again), text);
}

TEST(Objects, all_errors_of_a_document_are_reported_together) {
  const auto read = read_all<Service>(
      R"({"metadata":{"name":7},"spec":{"replcas":2,"replicas":"x","run":{"env":{"A":1,"B":2}}}})",
      Reading::strict);
  ASSERT_FALSE(read);
  std::vector<std::string> fields;
  for (const api::FieldError& error : read.error()) fields.push_back(error.field);
  EXPECT_EQ(fields, (std::vector<std::string>{"metadata.name", "spec.replicas", "spec.run.env.A",
                                              "spec.run.env.B", "spec.replcas"}));
  EXPECT_EQ(read.error()[0].value, "7");
  EXPECT_EQ(read.error()[1].message, R"(spec.replicas: "x" is not a non-negative whole number)");
  EXPECT_TRUE(
      read.error()[4].message.starts_with("spec.replcas: unknown field; the fields are autoscale, cpu,"))
      << read.error()[4].message;
}

TEST(Objects, the_number_of_reported_errors_is_limited) {
  std::string text = R"({"spec":{"run":{"command":[)";
  for (int i = 0; i < 1000; ++i) text += "1,";
  const auto read = read_all<Service>(text + "1]}}}", Reading::strict);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().size(), api::max_field_errors);
}

}  // namespace
}  // namespace carve::objects
