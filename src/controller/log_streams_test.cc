#include "controller/log_streams.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "controller/objects/testing/journals.h"
#include "runner/supervisor_state.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Lines final : http::Stream {
  std::vector<std::string> all;
  bool has_ended = false;
  bool send(const http::StreamEvent& e) override {
    all.push_back(e.data);
    return true;
  }
  void end() override { has_ended = true; }
  std::vector<std::string> taken() { return std::exchange(all, {}); }
};

// An object with replicas whose logs are written by the test.
struct Followable {
  std::string folder = [] {
    char name[] = "/tmp/carve-follow-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  NoJournal journal;
  ObjectRegistry objects{journal, {}, 0};
  LogStreams streams{objects, [this](const std::string& slice) { return folder + "/" + slice; }};
  Lines lines;
  std::shared_ptr<void> subscription;

  Followable() { EXPECT_TRUE(objects.add({.key = {.name = "a"}, .uid = "u"})); }
  ~Followable() {
    subscription.reset();
    std::filesystem::remove_all(folder);
  }
  void replicas(std::initializer_list<const char*> slices) {
    std::string list;
    uint32_t index = 0;
    for (const char* slice : slices)
      list += fmt::format(R"({}{{"index":{},"slice":"{}"}})", list.empty() ? "" : ",", index++, slice);
    ASSERT_TRUE(objects.update({.name = "a"}, [&](Object& o) -> Outcome<void> {
      o.status = fmt::format(R"({{"replicaList":[{}]}})", list);
      return {};
    }));
  }
  void write(const std::string& slice, const std::string& text) {
    std::filesystem::create_directories(folder + "/" + slice);
    auto log = runner::LogWriter::open(folder + "/" + slice + "/" + runner::log_folder_name);
    ASSERT_TRUE(log) << log.error().sentence;
    log->write(runner::LogStream::standard_output, text, 1'000'000'000);
  }
  void follow(const LogQuery& query = {}) {
    auto begun = streams.begin(*objects.find({.name = "a"}), query);
    for (const auto& e : begun.first) lines.all.push_back(e.data);
    subscription = begun.subscribe(lines);
  }
};

TEST(LogStreams, lines_come_as_they_are_written) {
  Followable f;
  f.replicas({"a-1-0"});
  f.write("a-1-0", "one\ntwo\n");
  f.follow({.tail = 1});
  EXPECT_THAT(f.lines.taken(), ElementsAre("two"));
  f.write("a-1-0", "three\n");
  f.streams.tick();
  EXPECT_THAT(f.lines.taken(), ElementsAre("three"));
  f.streams.tick();
  EXPECT_THAT(f.lines.taken(), IsEmpty());
}

TEST(LogStreams, a_later_replica_is_followed_from_its_first_line) {
  Followable f;
  f.replicas({});
  f.follow();
  f.replicas({"a-1-0", "a-1-1"});
  f.write("a-1-0", "one\n");
  f.write("a-1-1", "two\n");
  f.streams.tick();
  EXPECT_THAT(f.lines.taken(), ElementsAre("a-1-0 one", "a-1-1 two"));
  Followable other;
  other.replicas({"a-1-0", "a-1-1"});
  other.write("a-1-0", "one\n");
  other.write("a-1-1", "two\n");
  other.follow({.replica = 1});
  EXPECT_THAT(other.lines.taken(), ElementsAre("a-1-1 two"));
}

TEST(LogStreams, a_fast_program_does_not_overrun_the_stream) {
  Followable f;
  f.replicas({"a-1-0"});
  f.write("a-1-0", "begin\n");
  f.follow();
  f.lines.taken();
  const std::string line(8000, 'x');
  for (int i = 0; i < 40; ++i) f.write("a-1-0", line + "\n");
  size_t lines = 0, ticks = 0;
  while (lines < 40) {
    f.streams.tick();
    size_t bytes = 0;
    for (const std::string& text : f.lines.taken()) {
      bytes += text.size();
      ++lines;
    }
    ASSERT_LE(bytes, max_log_bytes_per_tick + line.size());
    ASSERT_LT(++ticks, 10u);
  }
}

TEST(LogStreams, a_stream_ends_with_the_token_of_its_caller_and_sends_nothing_more) {
  Followable f;
  f.replicas({"a-1-0"});
  f.write("a-1-0", "one\n");
  bool is_valid = true;
  f.follow({.may_continue = [&] { return is_valid; }});
  EXPECT_THAT(f.lines.taken(), ElementsAre("one"));
  f.streams.tick();
  EXPECT_FALSE(f.lines.has_ended);
  is_valid = false;
  f.write("a-1-0", "two\n");
  f.streams.tick();
  EXPECT_TRUE(f.lines.has_ended);
  EXPECT_THAT(f.lines.taken(), IsEmpty());
}

TEST(LogStreams, a_stream_ends_with_its_object) {
  Followable f;
  f.follow();
  f.streams.tick();
  EXPECT_FALSE(f.lines.has_ended);
  ASSERT_TRUE(f.objects.remove({.name = "a"}));
  f.streams.tick();
  EXPECT_TRUE(f.lines.has_ended);
}

}  // namespace
}  // namespace carve::controller
