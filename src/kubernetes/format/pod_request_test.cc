#include "kubernetes/format/pod_request.h"

#include <gmock/gmock.h>

namespace carve::kubernetes {
namespace {

using testing::HasSubstr;

TEST(PodRequest, is_one_line_that_parses_back) {
  PodRequest request{.dialect = "ack", .given = {{"web", {{"aliyun.com/gpu-mem", "16"}}}}, .cpu = 4000};
  request.containers["web"] = {.amounts = {.memory_bytes = 2ull << 30}, .unit = 128 << 20, .units = 16};
  const std::string text = api::write(request);
  EXPECT_EQ(text,
            R"({"v":1,"dialect":"ack","given":{"web":{"aliyun.com/gpu-mem":"16"}},)"
            R"("containers":{"web":{"memory_bytes":2147483648,"unit":134217728,"units":16}},"cpu":4000})");
  const auto read = read_request(text);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(api::write(*read), text);
}

TEST(PodRequest, rejects_unreadable_annotations) {
  const std::pair<std::string, const char*> rows[] = {
      {R"({"v":2})", "version 2: this program reads 1; upgrade it"},
      {R"({"dialect":"ack"})", "version 0: this program reads 1"},
      {R"({"v":1,"new":1})", "new"},
      {R"({"v":1,"containers":[]})", "[] is not an object"},
      {R"({"v":1,"containers":{"a":{"memory_bytes":"1"}}})", "containers.a.memory_bytes"},
      {R"({"v":1,"given":{"a":{"k":1}}})", "given.a.k"},
      {R"({"v":1,"containers":{"a":{"policy":"x"}}})", "fixed-share"},
      {"{", "carve.dev/request: "},
      {std::string(max_annotation_bytes + 1, ' '), "at most 16384"}};
  for (const auto& [text, message] : rows) {
    const auto read = read_request(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace carve::kubernetes
