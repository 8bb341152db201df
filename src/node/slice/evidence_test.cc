#include "node/slice/evidence.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace carve::node {
namespace {

TEST(Evidence, shows_this_process_as_a_dynamic_one_without_the_library) {
  const ProcessEvidence seen = evidence_of(getpid());
  EXPECT_FALSE(seen.our_library);
  EXPECT_FALSE(seen.the_driver);
  EXPECT_TRUE(seen.loader);
  EXPECT_FALSE(seen.is_mps_server);
}

}  // namespace
}  // namespace carve::node
