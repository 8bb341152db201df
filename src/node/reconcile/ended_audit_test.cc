#include "node/reconcile/ended_audit.h"

#include <gmock/gmock.h>

namespace carve::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

AccountedObserved ended(int pid = 50) {
  return {.device = 0,
          .pid = pid,
          .start_us = 1'000'000,
          .active_ms = 100,
          .peak = {uint64_t{12} << 30},
          .slice = 7,
          .slice_name = "a"};
}

template <class Change>
std::vector<EndedFinding> judged(Change change) {
  AccountedObserved p = ended();
  change(p);
  return EndedAudit().judge({p});
}

TEST(EndedAudit, reports_a_process_of_a_slice_that_never_attached_as_a_violation) {
  EXPECT_THAT(
      EndedAudit().judge({ended()}),
      ElementsAre(EndedFinding{
          7, "a", "process 50 used 12 GiB of device 0 for 0.1 s without having attached, and has ended",
          ViolationKind::bypass}));
}

TEST(EndedAudit, reports_a_process_without_a_known_slice_as_an_event_of_the_node) {
  const auto found = judged([](auto& p) { p.slice.reset(); });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].slice, std::nullopt);
  EXPECT_EQ(found[0].violation, std::nullopt);
  EXPECT_THAT(found[0].text, HasSubstr("its slice is unknown"));
}

TEST(EndedAudit, reports_no_violation_for_a_slice_without_isolation) {
  const auto found = judged([](auto& p) { p.limited = false; });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].violation, std::nullopt);
}

TEST(EndedAudit, ignores_an_attached_process) {
  EXPECT_THAT(judged([](auto& p) { p.known_as = KnownAs::attached; }), IsEmpty());
}

TEST(EndedAudit, ignores_a_process_without_memory_or_on_a_device_without_slices) {
  EXPECT_THAT(judged([](auto& p) { p.peak = {}; }), IsEmpty());
  EXPECT_THAT(judged([](auto& p) { p.is_shared = false; }), IsEmpty());
  EXPECT_THAT(judged([](auto& p) { p.is_running = true; }), IsEmpty());
}

TEST(EndedAudit, a_process_is_reported_once) {
  EndedAudit audit;
  EXPECT_EQ(audit.judge({ended(), ended(51)}).size(), 2u);
  EXPECT_THAT(audit.judge({ended(), ended(51)}), IsEmpty());
}

TEST(EndedAudit, does_not_report_again_a_process_that_was_judged_while_it_ran) {
  for (const bool attached : {false, true}) {
    EndedAudit audit;
    AccountedObserved p = ended();
    p.is_running = true;
    p.is_decided = !attached;
    p.known_as = attached ? KnownAs::attached : KnownAs::unattached;
    EXPECT_THAT(audit.judge({p}), IsEmpty());
    EXPECT_THAT(audit.judge({ended()}), IsEmpty());
  }
}

TEST(EndedAudit, distinguishes_processes_with_a_reused_pid) {
  EndedAudit audit;
  AccountedObserved first = ended();
  first.known_as = KnownAs::attached;
  AccountedObserved second = ended();
  second.start_us += 1;
  EXPECT_EQ(audit.judge({first, second}).size(), 1u);
}

TEST(EndedAudit, counts_processes_that_cannot_be_distinguished) {
  AccountedObserved one = ended(), two = ended(51);
  one.known_as = two.known_as = KnownAs::unknown;
  const auto found = EndedAudit().judge({one, two});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].slice, std::nullopt);
  EXPECT_THAT(found[0].text, HasSubstr("2 ended processes of device 0 were not audited"));
}

}  // namespace
}  // namespace carve::node
