#include "node/attach/attach_server.h"

#include <gtest/gtest.h>

#include <cstring>

#include "wire/shm/layout.h"

namespace carve::node {
namespace {

shm::AttachRequest good() {
  shm::AttachRequest r{};
  r.magic = shm::attach_magic;
  r.layout = shm::layout_version;
  r.size = sizeof r;
  r.guest = shm::Guest::preload;
  r.image = 77;
  return r;
}

TEST(AttachRequest, is_read_whole_or_not_at_all) {
  const shm::AttachRequest r = good();
  const auto read = parse_attach_request(&r, sizeof r);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->image, 77u);
  for (ssize_t size = -1; size < static_cast<ssize_t>(sizeof r); ++size)
    EXPECT_FALSE(parse_attach_request(&r, size)) << size;
}

TEST(AttachRequest, each_wrong_field_is_refused_and_another_layout_is_not) {
  struct Row {
    bool read;
    void (*spoil)(shm::AttachRequest&);
  };
  const Row rows[] = {
      {false, [](shm::AttachRequest& r) { r.magic = 0; }},
      {false, [](shm::AttachRequest& r) { r.size = 63; }},
      {false, [](shm::AttachRequest& r) { r.size = UINT32_MAX; }},
      {false, [](shm::AttachRequest& r) { r.guest = static_cast<shm::Guest>(0); }},
      {false, [](shm::AttachRequest& r) { r.guest = static_cast<shm::Guest>(3); }},
      {true, [](shm::AttachRequest& r) { r.layout = 99; }},  // The answer has a sentence.
  };
  for (const Row& row : rows) {
    shm::AttachRequest r = good();
    row.spoil(r);
    EXPECT_EQ(parse_attach_request(&r, sizeof r).has_value(), row.read) << &row - rows;
  }
}

TEST(AttachRequest, a_longer_one_from_a_later_library_is_read_as_far_as_known) {
  shm::AttachRequest r = good();
  r.size = 128;
  EXPECT_TRUE(parse_attach_request(&r, 128));
  r.size = 5000;
  EXPECT_FALSE(parse_attach_request(&r, 5000));
}

}  // namespace
}  // namespace carve::node
