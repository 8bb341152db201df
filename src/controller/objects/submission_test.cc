#include "controller/objects/submission.h"

#include <gmock/gmock.h>

namespace carve::controller {
namespace {

using testing::HasSubstr;

constexpr const char* ours = R"(apiVersion: carve.dev/v1
kind: Service
metadata: {name: a}
spec: {run: {command: [serve]}}
)";
constexpr const char* eas = R"({"metadata":{"name":"b"},"containers":[{"command":"serve"}]})";

TEST(Submission, the_dialect_of_each_document_is_seen) {
  const auto both = read_submissions(std::string(ours) + "---\n" + eas + "\n", "auto", {});
  ASSERT_TRUE(both) << both.error().front().sentence;
  ASSERT_EQ(both->size(), 2u);
  EXPECT_EQ((*both)[0].metadata.name, "a");
  EXPECT_EQ((*both)[0].form.source.dialect, "");
  EXPECT_EQ((*both)[1].form.source.dialect, "eas");
}

TEST(Submission, one_wrong_document_refuses_all_and_says_which) {
  const auto read = read_submissions(std::string(ours) + "---\n" + ours + "---\nkind: Job\n", "auto", {});
  ASSERT_FALSE(read);
  std::string all;
  for (const api::FieldError& e : read.error()) all += e.sentence + "\n";
  EXPECT_THAT(all, HasSubstr("document 3: kind: 'Job' is not Service"));
  EXPECT_FALSE(read_submissions("", "auto", {}));
}

}  // namespace
}  // namespace carve::controller
