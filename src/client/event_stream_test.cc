#include "client/event_stream.h"

#include <gmock/gmock.h>

#include <random>
#include <vector>

namespace carve::client {
namespace {

using testing::ElementsAre;

std::vector<std::string> read_in_pieces(std::string_view bytes, size_t piece) {
  EventStreamReader reader;
  std::vector<std::string> out;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    EXPECT_TRUE(reader.read(bytes.substr(0, piece),
                            [&](const StreamEvent& e) { out.push_back(e.id + "|" + e.data); }));
  return out;
}

TEST(EventStream, can_be_split_into_any_pieces) {
  const std::string_view text =
      ":\n\nid: 1\ndata: one\n\n:comment\ndata:two\r\ndata:  three\r\n\r\nevent: x\nid: 2\n\ndata\rdata: "
      "y\r\rid: 3\nretry: "
      "5\nunknown\ndata: {\"a\": 1}\n\ndata: not complete\n";
  for (size_t piece = 1; piece <= text.size(); ++piece)
    EXPECT_THAT(read_in_pieces(text, piece), ElementsAre("1|one", "1|two\n three", "2|\ny", "3|{\"a\": 1}"))
        << piece;
}

TEST(EventStream, limits_the_size_of_an_event) {
  EventStreamReader reader;
  const auto none = [](const StreamEvent&) {};
  const std::string line = "data: " + std::string(max_event_bytes / 4, 'x') + "\n";
  EXPECT_TRUE(reader.read(line + line + line, none));
  EXPECT_TRUE(reader.read("\n" + line + line + line, none));
  EXPECT_FALSE(reader.read(line, none));
}

TEST(EventStream, survives_random_bytes) {
  std::mt19937 dice(3);
  const std::string_view alphabet = "id:data \r\n\n\x01x";
  EventStreamReader reader;
  size_t events = 0;
  for (int i = 0; i < 100'000; ++i) {
    const char c = i % 7 == 0 ? static_cast<char>(dice()) : alphabet[dice() % alphabet.size()];
    ASSERT_TRUE(reader.read({&c, 1}, [&](const StreamEvent& e) {
      ++events;
      EXPECT_EQ(e.id.find('\n'), std::string::npos);
    }));
  }
}

}  // namespace
}  // namespace carve::client
