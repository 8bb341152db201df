#include "http/server.h"

#include <gmock/gmock.h>

#include <random>

namespace carve::http {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A conversation whose handler returns the request.
struct Echo {
  Conversation conversation{[](unsigned status, const std::string& detail) {
    return Response{status, "application/problem+json", detail};
  }};
  std::vector<Request> seen;
  std::string out;
  bool say(std::string_view bytes) {
    return conversation.receive(
        bytes,
        [&](const Request& r) {
          seen.push_back(r);
          return Response{200, "application/json", "{}"};
        },
        out);
  }
};

TEST(Http, a_request_in_one_piece_or_byte_by_byte_is_the_same) {
  const std::string text =
      "POST /v1/slices?x=1 HTTP/1.1\r\nHost: carve\r\nContent-Length: 7\r\n\r\n{\"a\":1}"
      "GET /v1/devices HTTP/1.1\r\nHost: carve\r\n\r\n";
  Echo whole;
  EXPECT_TRUE(whole.say(text));
  Echo pieces;
  for (const char c : text) EXPECT_TRUE(pieces.say({&c, 1}));
  for (const Echo* e : {&whole, &pieces}) {
    ASSERT_EQ(e->seen.size(), 2u);
    EXPECT_EQ(e->seen[0].method, "POST");
    EXPECT_EQ(e->seen[0].path, "/v1/slices");
    EXPECT_EQ(e->seen[0].query, "x=1");
    EXPECT_EQ(e->seen[0].body, "{\"a\":1}");
    EXPECT_EQ(e->seen[1].path, "/v1/devices");
    EXPECT_THAT(e->out, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_FALSE(e->conversation.within_request());
  }
}

TEST(Http, a_body_in_chunks_is_the_same_in_any_pieces) {
  for (const std::string chunks :
       {"0\r\n\r\n", "1\r\n{\r\n0\r\n\r\n", "2;x=y\r\n{}\r\n1\r\n \r\n0\r\nTrailer: t\r\n\r\n"}) {
    const std::string text = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks;
    Echo whole;
    EXPECT_TRUE(whole.say(text));
    ASSERT_EQ(whole.seen.size(), 1u) << chunks;
    for (size_t length = 1; length < text.size(); ++length) {
      Echo pieces;
      for (size_t at = 0; at < text.size(); at += length)
        EXPECT_TRUE(pieces.say(std::string_view(text).substr(at, length)));
      ASSERT_EQ(pieces.seen.size(), 1u) << chunks << " by " << length;
      EXPECT_EQ(pieces.seen[0].body, whole.seen[0].body);
      EXPECT_FALSE(pieces.conversation.within_request());
    }
  }
}

TEST(Http, limits_and_nonsense_are_answered_and_hung_up) {
  const struct {
    std::string text;
    const char* status;
  } rows[] = {
      {"POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n" + std::string(65537, 'x'), "413"},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", "413"},
      {"POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n", "4"},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n", "431"},
      {std::string(20000, 'A'), "4"},
      {"hello\r\n\r\n", "400"},
      {"GET / HTTP/9.9\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
  };
  for (const auto& row : rows) {
    Echo e;
    EXPECT_FALSE(e.say(row.text)) << row.text.substr(0, 40);
    EXPECT_THAT(e.out, StartsWith(std::string("HTTP/1.1 ") + row.status)) << row.text.substr(0, 40);
    EXPECT_THAT(e.out, HasSubstr("application/problem+json"));
    EXPECT_TRUE(e.seen.empty());
  }
}

TEST(Http, a_caller_who_wants_the_connection_closed_gets_that) {
  Echo e;
  EXPECT_FALSE(e.say("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(e.out, HasSubstr("Connection: close"));
}

TEST(Http, a_flood_of_requests_is_cut) {
  Echo e;
  std::string flood;
  for (int i = 0; i < 1000; ++i) flood += "GET / HTTP/1.1\r\n\r\n";
  EXPECT_FALSE(e.say(flood));
  EXPECT_LE(e.seen.size(), 16u);
}

TEST(Http, broken_requests_in_random_pieces_never_do_harm) {
  std::mt19937 dice(11);
  const std::string good = "POST /v1/slices HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n{\"devices\":2}";
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (unsigned i = 0, n = dice() % 6; i < n; ++i) text[dice() % text.size()] = static_cast<char>(dice());
    Echo e;
    for (size_t at = 0; at < text.size();) {
      const size_t length = dice() % 20 + 1;
      if (!e.say(std::string_view(text).substr(at, length))) break;
      at += length;
    }
    ASSERT_LE(e.seen.size(), 2u);
  }
}

}  // namespace
}  // namespace carve::http
