#include "cli/top_session.h"

#include <gmock/gmock.h>

#include <set>

namespace carve::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Pressed = TopKey::Kind;

api::Slice slice(const std::string& name, uint32_t device, uint64_t charged, uint32_t share_bp,
                 uint32_t uid = 0) {
  api::Slice out;
  out.name = name;
  out.owner_uid = uid;
  out.command = "./" + name + " --train";
  out.account = "research";
  api::SlicePart part;
  part.index = device;
  part.uuid = "GPU-" + std::to_string(device);
  part.quota_bytes = 8ull << 30;
  part.charged_bytes = charged;
  part.share_bp = share_bp;
  out.parts.push_back(part);
  return out;
}

TopView three_slices() {
  TopView view;
  for (uint32_t i = 0; i < 2; ++i) {
    api::Device device;
    device.index = i;
    device.uuid = "GPU-" + std::to_string(i);
    view.devices.devices.push_back(device);
  }
  view.slices.slices = {slice("late", 1, 1, 2000), slice("big", 0, 5, 1000, 7), slice("apt", 0, 3, 3000)};
  view.user_names = {{0, "root"}, {7, "Anna"}};
  return view;
}

std::vector<std::string> names(const TopView& view, const TopState& state) {
  std::vector<std::string> out;
  for (const TopRow& row : top_rows(view, state)) out.push_back(row.slice->name);
  return out;
}

TopAction type(TopState& state, const std::string& text, const TopView& view) {
  TopAction last;
  for (const char c : text) last = press(state, {Pressed::character, c}, view, 10);
  return last;
}

TEST(TopSession, sorts_by_each_column) {
  const TopView view = three_slices();
  TopState state;
  EXPECT_THAT(names(view, state), ElementsAre("apt", "big", "late"));
  type(state, "M", view);
  EXPECT_THAT(names(view, state), ElementsAre("big", "apt", "late"));
  type(state, "M", view);
  EXPECT_THAT(names(view, state), ElementsAre("late", "apt", "big"));
  type(state, "S", view);
  EXPECT_THAT(names(view, state), ElementsAre("apt", "late", "big"));
  type(state, "O", view);
  EXPECT_THAT(names(view, state), ElementsAre("big", "apt", "late"));
  type(state, "N", view);
  EXPECT_THAT(names(view, state), ElementsAre("apt", "big", "late"));
  type(state, "r", view);
  EXPECT_THAT(names(view, state), ElementsAre("late", "big", "apt"));
}

TEST(TopSession, o_visits_every_order_and_returns) {
  const TopView view = three_slices();
  TopState state;
  std::set<TopOrder> seen;
  do {
    seen.insert(state.order);
    type(state, "o", view);
  } while (state.order != TopOrder::device);
  EXPECT_EQ(seen.size(), 7u);
}

TEST(TopSession, a_filter_matches_name_owner_account_and_command) {
  const TopView view = three_slices();
  TopState state;
  type(state, "/ANNA", view);
  EXPECT_THAT(names(view, state), ElementsAre("big"));
  press(state, {Pressed::enter}, view, 10);
  EXPECT_EQ(state.mode, TopMode::browse);
  type(state, "/q", view);  // A letter that is a command outside of the filter.
  EXPECT_THAT(names(view, state), ElementsAre());
  press(state, {Pressed::escape}, view, 10);
  EXPECT_THAT(names(view, state), ElementsAre("big"));
  press(state, {Pressed::escape}, view, 10);
  EXPECT_EQ(names(view, state).size(), 3u);
  type(state, "/apt --", view);
  EXPECT_THAT(names(view, state), ElementsAre("apt"));
}

TEST(TopSession, backspace_removes_a_whole_character) {
  const TopView view = three_slices();
  TopState state;
  type(state, "/a\xc3\xa9", view);
  press(state, {Pressed::backspace}, view, 10);
  EXPECT_EQ(state.filter, "a");
  press(state, {Pressed::backspace}, view, 10);
  press(state, {Pressed::backspace}, view, 10);
  EXPECT_EQ(state.filter, "");
}

TEST(TopSession, the_selection_moves_and_stays_at_the_ends) {
  const TopView view = three_slices();
  TopState state;
  press(state, {Pressed::up}, view, 10);
  EXPECT_EQ(state.selected->slice, "apt");
  press(state, {Pressed::up}, view, 10);
  EXPECT_EQ(state.selected->slice, "apt");
  press(state, {Pressed::page_down}, view, 2);
  EXPECT_EQ(state.selected->slice, "late");
  press(state, {Pressed::down}, view, 10);
  EXPECT_EQ(state.selected->slice, "late");
  type(state, "k", view);
  EXPECT_EQ(state.selected->slice, "big");
  type(state, "G", view);
  EXPECT_EQ(state.selected->slice, "late");
}

TEST(TopSession, the_selection_is_a_slice_and_not_a_line) {
  TopView view = three_slices();
  TopState state;
  type(state, "jj", view);
  ASSERT_EQ(state.selected->slice, "big");
  type(state, "M", view);
  EXPECT_EQ(state.selected->slice, "big");
  view.slices.slices.erase(view.slices.slices.begin() + 1);
  keep_selection(state, top_rows(view, state));
  EXPECT_FALSE(state.selected && state.selected->slice == "big");
}

TEST(TopSession, stopping_asks_first) {
  const TopView view = three_slices();
  TopState state;
  type(state, "s", view);
  EXPECT_TRUE(state.notice.is_error);
  EXPECT_EQ(state.mode, TopMode::browse);
  type(state, "js", view);
  EXPECT_EQ(state.mode, TopMode::confirm_stop);
  EXPECT_EQ(type(state, "n", view).kind, TopAction::Kind::none);
  EXPECT_EQ(state.notice.text, "slice apt was not stopped");
  EXPECT_EQ(type(state, "s", view).kind, TopAction::Kind::none);
  const TopAction action = type(state, "y", view);
  EXPECT_EQ(action.kind, TopAction::Kind::stop);
  EXPECT_EQ(action.slice, "apt");
  // Enter is not a yes.
  type(state, "s", view);
  EXPECT_EQ(press(state, {Pressed::enter}, view, 10).kind, TopAction::Kind::none);
}

TEST(TopSession, a_question_is_about_the_slice_that_was_selected_when_it_began) {
  TopView view = three_slices();
  TopState state;
  type(state, "js", view);
  view.slices.slices.pop_back();  // apt has ended.
  keep_selection(state, top_rows(view, state));
  EXPECT_EQ(type(state, "y", view).slice, "apt");
}

TEST(TopSession, changes_are_parsed_and_confirmed) {
  const TopView view = three_slices();
  TopState state;
  type(state, "je6GiB 30%", view);
  press(state, {Pressed::enter}, view, 10);
  EXPECT_EQ(state.mode, TopMode::confirm_change);
  const TopAction action = type(state, "y", view);
  ASSERT_EQ(action.kind, TopAction::Kind::change);
  EXPECT_EQ(action.change.memory_bytes, 6ull << 30);
  EXPECT_EQ(action.change.share_bp, 3000u);
  type(state, "e6 stone", view);
  press(state, {Pressed::enter}, view, 10);
  EXPECT_EQ(state.mode, TopMode::change);
  EXPECT_TRUE(state.notice.is_error);
  press(state, {Pressed::escape}, view, 10);
  EXPECT_EQ(state.mode, TopMode::browse);
}

TEST(TopSession, a_slice_of_a_service_is_not_changed) {
  TopView view = three_slices();
  view.slices.slices[2].labels = {{"carve.dev/kind", "service"}, {"carve.dev/name", "demo"}};
  TopState state;
  type(state, "je", view);
  EXPECT_EQ(state.mode, TopMode::browse);
  EXPECT_THAT(state.notice.text, HasSubstr("belongs to service/demo"));
}

TEST(TopSession, texts_that_are_no_change) {
  EXPECT_FALSE(parse_change(""));
  EXPECT_FALSE(parse_change("30% 40%"));
  EXPECT_FALSE(parse_change("1GiB 2GiB"));
  EXPECT_FALSE(parse_change("101%"));
  EXPECT_FALSE(parse_change("much"));
  EXPECT_EQ(change_text(*parse_change("30% 2GiB")), "memory 2 GiB and share 30%");
}

TEST(TopSession, history_is_bounded_and_forgets_devices) {
  TopView view = three_slices();
  TopHistory history;
  for (size_t i = 0; i < 2 * TopHistory::kept; ++i) {
    view.devices.devices[0].utilization_percent = static_cast<uint32_t>(i % 100);
    history.add(view);
  }
  EXPECT_EQ(history.busy_bp.at("GPU-0").size(), TopHistory::kept);
  view.devices.devices.pop_back();
  history.add(view);
  EXPECT_EQ(history.busy_bp.size(), 1u);
}

// Every key in every mode, at random: no crash, and no action without a y after a question.
TEST(TopSession, survives_random_keys) {
  const TopView view = three_slices();
  TopState state;
  uint32_t seed = 1;
  for (int i = 0; i < 20'000; ++i) {
    seed = seed * 1664525 + 1013904223;
    const TopKey key{static_cast<Pressed>((seed >> 8) % 12), static_cast<char>(seed >> 24)};
    const TopMode before = state.mode;
    const TopAction action = press(state, key, view, (seed >> 4) % 5);
    keep_selection(state, top_rows(view, state));
    if (action.kind == TopAction::Kind::stop) {
      EXPECT_EQ(before, TopMode::confirm_stop);
    }
    if (action.kind == TopAction::Kind::change) {
      EXPECT_EQ(before, TopMode::confirm_change);
    }
  }
}

}  // namespace
}  // namespace carve::cli
