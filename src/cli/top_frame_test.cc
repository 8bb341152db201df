#include "cli/top_frame.h"

#include <gmock/gmock.h>

namespace carve::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TopView many_slices(uint32_t devices, uint32_t slices) {
  TopView view;
  view.agent.version = "1.2.3";
  view.agent.simulated = "a10";
  for (uint32_t i = 0; i < devices; ++i) {
    api::Device device;
    device.index = i;
    device.uuid = "GPU-" + std::to_string(i);
    device.name = "NVIDIA A10";
    device.usable_bytes = 24ull << 30;
    device.granted_bytes = 12ull << 30;
    device.arbitration = api::DeviceCompute{.idle_1s_bp = 2500};
    view.devices.devices.push_back(device);
  }
  for (uint32_t i = 0; i < slices; ++i) {
    api::Slice slice;
    slice.name = "slice-" + std::to_string(100 + i);
    slice.command = "python3 train.py --epoch " + std::to_string(i);
    slice.state = SliceState::running;
    api::SlicePart part;
    part.index = i % devices;
    part.uuid = "GPU-" + std::to_string(part.index);
    part.quota_bytes = 1ull << 30;
    part.charged_bytes = 1ull << 29;
    part.share_bp = 500;
    part.compute = api::PartCompute{.achieved_1s_bp = 512};
    slice.parts.push_back(part);
    slice.processes.push_back({.pid = 4711 + i, .command = "python3", .attached = true});
    view.slices.slices.push_back(slice);
  }
  return view;
}

std::vector<std::string> texts(const TopFrame& frame) {
  std::vector<std::string> out;
  for (const StyledLine& line : frame.lines) out.push_back(plain(line));
  return out;
}

TEST(TopFrame, fits_screens_of_every_size) {
  const TopView view = many_slices(8, 60);
  TopHistory history;
  history.add(view);
  for (const bool fine : {false, true})
    for (const size_t width : {1, 20, 60, 80, 99, 100, 120, 200, 400})
      for (const size_t height : {1, 3, 8, 24, 60})
        for (const TopMode mode : {TopMode::browse, TopMode::help, TopMode::filter, TopMode::change}) {
          TopState state{.tree = true, .mode = mode, .selected = TopRowName{"slice-159", 3}};
          const TopFrame frame = draw(view, state, history, {width, height}, fine, "");
          EXPECT_LE(frame.lines.size(), height);
          for (const StyledLine& line : frame.lines) EXPECT_LE(columns(line), width) << plain(line);
        }
}

TEST(TopFrame, shows_sixty_slices_on_a_small_screen) {
  const TopView view = many_slices(4, 60);
  const TopFrame frame = draw(view, {}, {}, {80, 24}, false, "");
  const auto lines = texts(frame);
  ASSERT_EQ(lines.size(), 24u);
  EXPECT_THAT(lines[0], StartsWith("carve 1.2.3 (simulated)  4 devices, 60 slices"));
  EXPECT_THAT(lines[1], AllOf(StartsWith("0 NVIDIA A10"), HasSubstr("]  50% GPU["), HasSubstr("]  75%")));
  EXPECT_THAT(lines[5], AllOf(StartsWith("NAME"), HasSubstr("DEVv"), Not(HasSubstr("COMMAND"))));
  EXPECT_THAT(lines[6], AllOf(StartsWith("slice-100"), HasSubstr("512 MiB of 1 GiB"), HasSubstr("5.1%")));
  EXPECT_THAT(lines[23], HasSubstr("q quit"));
}

TEST(TopFrame, keeps_the_selected_row_visible) {
  const TopView view = many_slices(4, 60);
  TopState state{.order = TopOrder::name, .selected = TopRowName{"slice-159", 3}};
  TopFrame frame = draw(view, state, {}, {80, 24}, false, "");
  EXPECT_THAT(texts(frame), Contains(StartsWith("slice-159")));
  state.first = frame.first;
  state.selected = TopRowName{"slice-158", 2};
  EXPECT_EQ(draw(view, state, {}, {80, 24}, false, "").first, frame.first);  // Visible: it does not scroll.
  state.selected = TopRowName{"slice-100", 0};
  EXPECT_EQ(draw(view, state, {}, {80, 24}, false, "").first, 0u);
}

TEST(TopFrame, shows_the_device_of_the_selected_slice) {
  const TopView view = many_slices(64, 64);
  const TopState state{.selected = TopRowName{"slice-150", 50}};
  const auto lines = texts(draw(view, state, {}, {80, 24}, false, ""));
  EXPECT_THAT(lines, Contains(StartsWith("50 NVIDIA A10")));
  EXPECT_THAT(lines, Contains(HasSubstr("57 more devices")));
}

TEST(TopFrame, a_tree_shows_the_processes) {
  const TopView view = many_slices(1, 2);
  EXPECT_THAT(texts(draw(view, {}, {}, {80, 24}, false, "")), Not(Contains(HasSubstr("4711"))));
  EXPECT_THAT(texts(draw(view, {.tree = true}, {}, {80, 24}, false, "")), Contains(StartsWith("  `- 4711")));
}

TEST(TopFrame, texts_of_other_users_cannot_control_the_terminal) {
  TopView view = many_slices(1, 1);
  api::Slice& slice = view.slices.slices[0];
  slice.command = slice.account = slice.processes[0].command = "\x1b[2J\n";
  view.user_names[0] = "\x1b]0;root";
  view.devices.devices[0].unmanaged_processes = {"\x1b[31mprocess"};
  const TopState state{.tree = true, .selected = TopRowName{slice.name, 0}};
  for (const std::string& line : texts(draw(view, state, {}, {200, 60}, false, "\x1b[5m lost")))
    EXPECT_THAT(line, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\n"))));
}

TEST(TopFrame, says_what_is_missing) {
  EXPECT_THAT(texts(draw({}, {}, {}, {80, 24}, false, "")), Contains(HasSubstr("No slices. Create one")));
  const TopView view = many_slices(1, 2);
  EXPECT_THAT(texts(draw(view, {.filter = "x"}, {}, {80, 24}, false, "")),
              Contains(HasSubstr("No slice matches the filter")));
  EXPECT_EQ(texts(draw(view, {}, {}, {80, 24}, false, "the agent ended")).back(), "the agent ended");
}

TEST(TopFrame, the_last_line_asks) {
  const TopView view = many_slices(1, 2);
  const auto last = [&](const TopState& state) {
    return texts(draw(view, state, {}, {100, 24}, false, "")).back();
  };
  EXPECT_EQ(last({.mode = TopMode::confirm_stop, .target = "a"}),
            "Stop slice a and all of its processes? y/N");
  EXPECT_EQ(last({.mode = TopMode::confirm_change, .target = "a", .change = {.share_bp = 3000}}),
            "Change slice a to share 30%? y/N");
  EXPECT_EQ(last({.filter = "ann", .mode = TopMode::filter}), "Filter: ann_");
}

TEST(TopBars, a_strip_shows_the_newest_values) {
  EXPECT_EQ(strip({0, 1, 5000, 10000, 20000}, 6, false), "  .=##");
  EXPECT_EQ(strip({0, 10000}, 1, false), "#");
  EXPECT_EQ(strip({}, 3, true), "   ");
  EXPECT_EQ(strip({10000}, 2, true), " █");
}

}  // namespace
}  // namespace carve::cli
