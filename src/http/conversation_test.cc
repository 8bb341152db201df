#include "http/conversation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <random>

namespace carve::http {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int64_t second = 1'000'000'000;

// A conversation under a virtual clock. Its handler records the requests and returns `response`.
struct Echo {
  size_t queue_bytes = 1000;
  std::vector<Request> seen;
  std::string out;
  int64_t now = 0;
  int woken = 0;
  Stream* stream = nullptr;        // Set while a stream is open.
  std::vector<StreamEvent> first;  // The first events of a stream.
  std::function<Response()> response = [] { return Response{200, "application/json", "{}"}; };
  Conversation conversation{
      {.handle =
           [this](const Request& r) {
             seen.push_back(r);
             return response();
           },
       .refuse =
           [](unsigned status, const std::string& detail) {
             return Response{status, "application/problem+json", detail};
           },
       .body_limit = [](std::string_view,
                        std::string_view path) { return path == "/large" ? 100'000u : max_body_bytes; },
       .wake = [this] { ++woken; },
       .queue_bytes = queue_bytes},
      0};

  // Takes all bytes that the conversation has to send.
  void read_all() {
    for (std::string_view bytes; !(bytes = conversation.unsent()).empty();) {
      out += bytes;
      conversation.sent(bytes.size(), now);
    }
  }
  bool say(std::string_view bytes) {
    conversation.receive(bytes, now);
    read_all();
    return !conversation.is_over();
  }
  void give_stream() {
    response = [this] {
      return Response{.content = EventStream{first, [this](Stream& s) {
                                               stream = &s;
                                               return std::shared_ptr<void>(
                                                   &stream, [](Stream** at) { *at = nullptr; });
                                             }}};
    };
  }
};

TEST(Http, parses_a_request_alike_in_one_piece_or_byte_by_byte) {
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
  }
}

TEST(Http, parses_a_chunked_body_alike_in_any_pieces) {
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
    }
  }
}

TEST(Http, responds_to_invalid_requests_and_closes_the_connection) {
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

// Headers that a proxy in front of the server could parse differently.
TEST(Http, rejects_an_ambiguous_header_in_any_pieces) {
  for (const std::string header : {"Transfer-Encoding: xchunked\r\nContent-Length: 2",
                                   "Transfer-Encoding: xchunked",
                                   "Transfer-Encoding: gzip, chunked",
                                   "Transfer-Encoding: chunked, chunked",
                                   "Transfer-Encoding: identity\r\nContent-Length: 2",
                                   "Transfer-Encoding:",
                                   "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                                   "Transfer-Encoding: chunked;x=y",
                                   "Transfer-Encoding: chunked\r\nContent-Length: 2",
                                   "Content-Length: 2\r\nTransfer-Encoding: chunked",
                                   "Content-Length: 2\r\nContent-Length: 2",
                                   "Content-Length: 2, 2",
                                   "Content-Length: +2",
                                   "Content-Length:",
                                   "X: a\r\n b\r\nContent-Length: 2",
                                   "X: a\r\n\tb\r\nContent-Length: 2",
                                   " X: a",
                                   "X: a\r\n ",
                                   "Content-Length: 2\r\n 2",
                                   "Transfer-Encoding:\r\n chunked"}) {
    const std::string text = "POST / HTTP/1.1\r\n" + header + "\r\n\r\n{}";
    for (const size_t length : {text.size(), size_t{1}, size_t{7}}) {
      Echo e;
      for (size_t at = 0; at < text.size(); at += length)
        if (!e.say(std::string_view(text).substr(at, length))) break;
      EXPECT_TRUE(e.seen.empty()) << header << " by " << length;
      EXPECT_THAT(e.out, StartsWith("HTTP/1.1 400 ")) << header << " by " << length;
    }
  }
  Echo old;
  EXPECT_FALSE(old.say("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
  EXPECT_TRUE(old.seen.empty());
  for (const char* good :
       {"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "transfer-encoding: CHUNKED \r\n\r\n0\r\n\r\n",
        "Content-Length: 2\r\n\r\n{}", "X: a  b\r\nContent-Length: 3\r\n\r\n\n b"}) {
    Echo e;
    EXPECT_TRUE(e.say("POST / HTTP/1.1\r\nHost: x\r\n" + std::string(good))) << good;
    EXPECT_EQ(e.seen.size(), 1u) << good << e.out;
  }
}

TEST(Http, ignores_trailers_of_a_chunked_body) {
  Echo e;
  EXPECT_TRUE(
      e.say("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
            "Authorization: Bearer a\r\nHost: y\r\n\r\n"));
  ASSERT_EQ(e.seen.size(), 1u);
  EXPECT_EQ(e.seen[0].headers.find("Authorization"), nullptr);
  EXPECT_EQ(e.seen[0].headers.count("Host"), 1u);
}

TEST(Http, closes_the_connection_if_the_caller_requests_it) {
  Echo e;
  EXPECT_FALSE(e.say("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(e.out, HasSubstr("Connection: close"));
}

TEST(Http, cuts_off_a_flood_of_requests) {
  Echo e;
  std::string flood;
  for (int i = 0; i < 1000; ++i) flood += "GET / HTTP/1.1\r\n\r\n";
  EXPECT_FALSE(e.say(flood));
  EXPECT_LE(e.seen.size(), 16u);
}

TEST(Http, invalid_requests_in_random_pieces_do_no_harm) {
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

// Returns an unnamed file with this content.
os::Fd file_of(const std::string& content) {
  os::Fd file(memfd_create("carve-test", MFD_CLOEXEC));
  EXPECT_EQ(write(file.get(), content.data(), content.size()), static_cast<ssize_t>(content.size()));
  return file;
}

TEST(Http, passes_headers_to_the_handler_and_finds_them_ignoring_case) {
  Echo e;
  EXPECT_TRUE(e.say("GET / HTTP/1.1\r\nHost: carve\r\nLAST-event-ID:  7-3 \r\nX: 1\r\nx: 2\r\n\r\n"));
  ASSERT_EQ(e.seen.size(), 1u);
  const Headers& headers = e.seen[0].headers;
  ASSERT_NE(headers.find("last-event-id"), nullptr);
  EXPECT_EQ(*headers.find("Last-Event-Id"), "7-3");
  EXPECT_EQ(*headers.find("x"), "1");
  EXPECT_EQ(headers.count("X"), 2u);
  EXPECT_EQ(headers.find("Authorization"), nullptr);
}

TEST(Http, limits_a_request_to_64_headers) {
  for (const size_t count : {max_headers, max_headers + 1}) {
    Echo e;
    std::string text = "GET / HTTP/1.1\r\n";
    for (size_t i = 0; i < count; ++i) text += "a: b\r\n";
    EXPECT_EQ(e.say(text + "\r\n"), count == max_headers);
    EXPECT_THAT(e.out, StartsWith(count == max_headers ? "HTTP/1.1 200" : "HTTP/1.1 431"));
  }
}

TEST(Http, limits_a_body_by_its_route) {
  const auto chunked = [](size_t bytes) {
    return fmt::format("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n", bytes,
                       std::string(bytes, 'x'));
  };
  const auto plain = [](size_t bytes) {
    return fmt::format("Content-Length: {}\r\n\r\n{}", bytes, std::string(bytes, 'x'));
  };
  const struct {
    const char* path;
    size_t bytes;
    const char* status;
  } rows[] = {
      {"/", max_body_bytes, "200"}, {"/", max_body_bytes + 1, "413"}, {"/large", max_body_bytes + 1, "200"},
      {"/large", 100'000, "200"},   {"/large?x=/", 100'000, "200"},   {"/large", 100'001, "413"},
      {"/larger", 100'000, "413"}};
  for (const auto& row : rows)
    for (const std::string& rest : {plain(row.bytes), chunked(row.bytes)}) {
      Echo e;
      e.say(fmt::format("POST {} HTTP/1.1\r\n", row.path) + rest);
      EXPECT_THAT(e.out, StartsWith(std::string("HTTP/1.1 ") + row.status)) << row.path << " " << row.bytes;
    }
}

TEST(Http, responds_to_head_with_the_length_but_without_content) {
  Echo e;
  EXPECT_TRUE(e.say("HEAD / HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(e.out, HasSubstr("Content-Length: 2\r\n"));
  EXPECT_THAT(e.out, EndsWith("\r\n\r\n"));
  e.give_stream();
  EXPECT_FALSE(e.say("HEAD / HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(e.stream, nullptr);
}

TEST(Http, sends_a_file_range_in_pieces_before_the_next_response) {
  std::string content(200'000, 'a');
  content[100] = 'b';
  content[150'100] = 'c';
  Echo e;
  int answers = 0;
  e.response = [&] {
    if (answers++ > 0) return Response{200, "text/plain", "second"};
    return Response{.content = FileRange{file_of(content), 100, 150'001}};
  };
  e.conversation.receive("GET /f HTTP/1.1\r\n\r\nGET /g HTTP/1.1\r\n\r\n", 0);
  EXPECT_EQ(answers, 1);
  size_t largest = 0;
  for (std::string_view bytes; !(bytes = e.conversation.unsent()).empty();) {
    largest = std::max(largest, bytes.size());
    const size_t taken = std::min<size_t>(bytes.size(), 5000);  // A socket may take only a part.
    e.out += bytes.substr(0, taken);
    e.conversation.sent(taken, 0);
  }
  EXPECT_LE(largest, 64u << 10);
  EXPECT_EQ(answers, 2);
  EXPECT_THAT(e.out, HasSubstr("Content-Length: 150001\r\n"));
  EXPECT_THAT(e.out, HasSubstr("\r\n\r\n" + content.substr(100, 150'001) + "HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(e.out, EndsWith("second"));
}

TEST(Http, closes_the_connection_if_a_file_has_become_shorter) {
  Echo e;
  e.response = [&] { return Response{.content = FileRange{file_of("short"), 0, 100}}; };
  EXPECT_FALSE(e.say("GET /f HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(e.out, EndsWith("short"));
}

TEST(Stream, has_ids_and_multi_line_data_and_ends_with_the_connection) {
  Echo e;
  e.first = {{"1", "one"}};
  e.give_stream();
  EXPECT_TRUE(e.say("GET /s HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(e.out, HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_THAT(e.out, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(e.out, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(e.out, EndsWith("\r\n\r\nid: 1\ndata: one\n\n"));
  ASSERT_NE(e.stream, nullptr);
  e.out.clear();
  EXPECT_TRUE(e.stream->send({"2", "a\nb\r\nc\rd"}));
  EXPECT_TRUE(e.stream->send({"", ""}));
  EXPECT_EQ(e.woken, 2);
  e.read_all();
  EXPECT_EQ(e.out, "id: 2\ndata: a\ndata: b\ndata: c\ndata: d\n\ndata: \n\n");
  EXPECT_TRUE(e.stream->send({"3", "last"}));
  e.stream->end();
  EXPECT_FALSE(e.stream->send({"4", "late"}));
  EXPECT_FALSE(e.conversation.is_over());  // The last event has not been sent yet.
  e.read_all();
  EXPECT_TRUE(e.conversation.is_over());
}

TEST(Stream, is_the_last_response_of_its_connection) {
  Echo e;
  e.give_stream();
  EXPECT_TRUE(e.say("GET /s HTTP/1.1\r\n\r\nGET /s HTTP/1.1\r\n\r\nGET /x HT"));
  EXPECT_TRUE(e.say("TP/1.1\r\n\r\n" + std::string(100'000, 'x')));
  EXPECT_EQ(e.seen.size(), 1u);
}

TEST(Stream, closes_when_its_queue_exceeds_the_limit_not_counting_the_first_events) {
  Echo e;
  e.first = {{"0", std::string(5000, 'x')}};
  e.give_stream();
  e.conversation.receive("GET /s HTTP/1.1\r\n\r\n", 0);
  const StreamEvent event{"1", std::string(85, 'Q')};  // 100 bytes with its framing.
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(e.stream->send({"1", std::string(85, 'Q')})) << i;
  e.read_all();  // A reader that has caught up has the whole queue again.
  EXPECT_EQ(std::count(e.out.begin(), e.out.end(), 'Q'), 9 * 85);
  int sent = 0;
  while (e.stream->send(event)) ++sent;
  EXPECT_EQ(sent, 10);
  EXPECT_TRUE(e.conversation.is_over());
  EXPECT_TRUE(e.conversation.unsent().empty());
  EXPECT_FALSE(e.stream->send(event));
}

TEST(Stream, sends_a_comment_after_15_s_of_silence_and_is_never_late) {
  Echo e;
  e.give_stream();
  e.say("GET /s HTTP/1.1\r\n\r\n");
  e.out.clear();
  for (e.now = second; e.now <= 100 * second; e.now += second) {
    if (e.now == 20 * second) e.stream->send({"1", "x"});  // The next comment is at 35 s.
    e.conversation.tick(e.now);
    e.read_all();
    ASSERT_FALSE(e.conversation.is_over());
  }
  EXPECT_EQ(std::count(e.out.begin(), e.out.end(), ':'), 2 + 1 + 5);  // The event has two colons.
}

TEST(Stream, ends_its_subscription_with_the_connection) {
  bool held = false;
  {
    Conversation conversation(
        {.handle =
             [&](const Request&) {
               held = true;
               return Response{.content = EventStream{{}, [&](Stream&) {
                                                        return std::shared_ptr<void>(
                                                            &held, [](bool* h) { *h = false; });
                                                      }}};
             }},
        0);
    conversation.receive("GET /s HTTP/1.1\r\n\r\n", 0);
    EXPECT_TRUE(held);
  }
  EXPECT_FALSE(held);
}

// Keeps the requests to /later open and answers when the test calls it.
struct AnswersLater : Echo {
  LaterAnswer* later = nullptr;
  AnswersLater() {
    response = [this] {
      if (seen.back().path != "/later") return Response{.content = "now"};
      return Response{.content = LaterContent{[this](LaterAnswer& answer) {
                        later = &answer;
                        return std::shared_ptr<void>();
                      }}};
    };
  }
};

TEST(Later, an_answer_is_sent_before_those_of_the_following_requests) {
  AnswersLater echo;
  EXPECT_TRUE(echo.say("GET /later HTTP/1.1\r\n\r\nGET /a HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(echo.out, "");
  EXPECT_TRUE(echo.say("GET /b HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(echo.seen.size(), 1u);
  echo.later->answer({.status = 201, .content = "later"});
  EXPECT_EQ(echo.woken, 1);
  echo.read_all();
  EXPECT_THAT(echo.out, StartsWith("HTTP/1.1 201 Created\r\n"));
  EXPECT_LT(echo.out.find("later"), echo.out.find("now"));
  EXPECT_EQ(echo.seen.size(), 3u);
  EXPECT_THAT(echo.out, EndsWith("now"));
}

TEST(Later, has_no_time_limit_but_a_byte_limit) {
  AnswersLater echo;
  echo.say("GET /later HTTP/1.1\r\n\r\n");
  for (echo.now = 0; echo.now < 600 * second; echo.now += second) echo.conversation.tick(echo.now);
  EXPECT_FALSE(echo.conversation.is_over());
  EXPECT_FALSE(echo.conversation.waits_since());
  EXPECT_TRUE(echo.say(std::string(70 << 10, 'x')));
  EXPECT_FALSE(echo.say(std::string(10 << 10, 'x')));
}

TEST(Later, may_answer_immediately_and_closes_if_the_caller_requests_it) {
  Echo echo;
  echo.response = [] {
    return Response{.content = LaterContent{[](LaterAnswer& answer) {
                      answer.answer({.content = "at once"});
                      return std::shared_ptr<void>();
                    }}};
  };
  EXPECT_TRUE(echo.say("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_FALSE(echo.say("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(echo.out, EndsWith("at once"));
}

TEST(Later, ends_with_the_connection) {
  bool held = false;
  {
    Echo echo;
    echo.response = [&] {
      return Response{.content = LaterContent{[&](LaterAnswer&) {
                        held = true;
                        return std::shared_ptr<void>(&held, [](bool* h) { *h = false; });
                      }}};
    };
    echo.say("GET / HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(held);
  }
  EXPECT_FALSE(held);
}

TEST(Http, a_connection_is_late_after_10_s_in_a_message_and_30_s_between_requests) {
  Echo idle;
  idle.conversation.tick(30 * second);
  EXPECT_FALSE(idle.conversation.is_over());
  idle.conversation.tick(30 * second + 1);
  EXPECT_TRUE(idle.conversation.is_over());

  Echo slow;
  slow.now = 100 * second;
  slow.say("GET /");
  slow.now = 109 * second;
  slow.say("x");  // More bytes of the request do not restart the time.
  slow.conversation.tick(110 * second);
  EXPECT_FALSE(slow.conversation.is_over());
  slow.conversation.tick(110 * second + 1);
  EXPECT_TRUE(slow.conversation.is_over());

  Echo reader;
  reader.conversation.receive("GET / HTTP/1.1\r\n\r\n", 0);
  reader.conversation.unsent();
  reader.conversation.sent(1, 9 * second);
  reader.conversation.tick(19 * second);
  EXPECT_FALSE(reader.conversation.is_over());
  reader.conversation.tick(19 * second + 1);
  EXPECT_TRUE(reader.conversation.is_over());
}

}  // namespace
}  // namespace carve::http
