#include "kubernetes/node/rules/sent_notes.h"

#include <gtest/gtest.h>

namespace carve::kubernetes::node {
namespace {

constexpr int64_t s = 1'000'000'000;

EventNote note(const std::string& text, const std::string& uid = "u") {
  return {
      .about = {"Pod", "a", "p", uid}, .reason = "CarveSliceReady", .action = "StartContainer", .note = text};
}

TEST(SentNotes, two_containers_that_crash_in_turn_get_one_event_each_in_10_minutes) {
  SentNotes notes;
  size_t sent = 0;
  for (int64_t at = 0; at < 600; at += 10)
    sent += notes.is_due(note(at % 20 == 0 ? "container a" : "container b"), at * s);
  EXPECT_EQ(sent, 2u);
  EXPECT_TRUE(notes.is_due(note("container a"), 600 * s));
  EXPECT_FALSE(notes.is_due(note("container b"), 609 * s));
  EXPECT_TRUE(notes.is_due(note("container b"), 610 * s));
}

TEST(SentNotes, other_objects_and_reasons_have_their_own_limits) {
  SentNotes notes;
  EXPECT_TRUE(notes.is_due(note("x"), 0));
  EXPECT_TRUE(notes.is_due(note("x", "v"), 0));
  EventNote refused = note("x");
  refused.reason = "CarveRefused";
  EXPECT_TRUE(notes.is_due(refused, 0));
  EXPECT_FALSE(notes.is_due(refused, 0));
}

TEST(SentNotes, a_note_that_keeps_changing_is_limited) {
  SentNotes notes;
  size_t sent = 0;
  for (int64_t at = 0; at < 600; ++at) sent += notes.is_due(note(std::to_string(at) + " MiB"), at * s);
  EXPECT_EQ(sent, max_notes_of_reason);
  EXPECT_TRUE(notes.is_due(note("again"), 600 * s));
}

TEST(SentNotes, the_oldest_note_is_forgotten_when_there_are_too_many) {
  SentNotes notes;
  for (size_t i = 0; i < max_notes_kept + 1; ++i)
    EXPECT_TRUE(notes.is_due(note("x", std::to_string(i)), static_cast<int64_t>(i)));
  EXPECT_EQ(notes.notes(), max_notes_kept);
  EXPECT_TRUE(notes.is_due(note("x", "0"), s));
}

}  // namespace
}  // namespace carve::kubernetes::node
