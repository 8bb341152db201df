// The protocol of one connection: received bytes become requests, and responses become bytes to send. It has
// no socket and no clock, so that tests and fuzzers can drive it. Times are in ns of CLOCK_MONOTONIC.
//
// A connection handles one request at a time, with its complete body and without upgrade. The next request is
// read when the last response has been sent. A stream is the last response of its connection: later bytes are
// ignored.
//
// Limits: 8 KiB and 64 lines of header, and 64 KiB of body unless the program sets another limit for the
// route. At most 10 s may pass from the first to the last byte of a request, and between two reads of
// response bytes by the peer, and at most 30 s between requests. While a later answer is pending there is no
// time limit, and at most 72 KiB of further requests are accepted. A stream has no time limit either: a
// comment is sent after every 15 s without other bytes, and the stream closes when its queue exceeds the
// limit.
#pragma once

#include <optional>

#include "http/message.h"

namespace carve::http {

inline constexpr int64_t request_patience_ns = 10'000'000'000;
inline constexpr int64_t idle_patience_ns = 30'000'000'000;
inline constexpr int64_t comment_interval_ns = 15'000'000'000;

class Conversation final : private Stream, private LaterAnswer {
 public:
  struct Hooks {
    std::function<Response(const Request&)> handle;
    Refuse refuse;
    BodyLimit body_limit = nullptr;        // If null, every route has max_body_bytes.
    std::function<void()> wake = nullptr;  // A stream has bytes to send, or has ended.
    size_t queue_bytes = max_stream_queue_bytes;
  };
  Conversation(Hooks hooks, int64_t now_ns);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // Takes received bytes. unsent() must be empty, and the connection must not be over.
  void receive(std::string_view bytes, int64_t now_ns);
  // Returns the bytes to send next, with at most 64 KiB of a file at a time. Empty if there are none now.
  std::string_view unsent();
  void sent(size_t bytes, int64_t now_ns);
  // Called every second. Sends a comment on an idle stream, and ends a connection that missed its deadline.
  void tick(int64_t now_ns);
  // Returns whether the connection is to be closed now.
  bool is_over() const;
  // Returns whether bytes are lost when the connection closes, because it was late, its queue was full, or a
  // file was too short.
  bool is_broken() const { return broken_; }
  bool is_streaming() const { return streaming_; }
  // Returns since when the peer has not sent a complete request, or no value while a response is being sent.
  std::optional<int64_t> waits_since() const;
  // Returns since when responses have been sent without a pause, or no value if none is being sent or for a
  // stream.
  std::optional<int64_t> sends_since() const;
  // Returns the size of an incomplete request, in bytes.
  size_t held_bytes() const;
  // Returns the number of bytes in memory of a response that the peer has not read. A stream's queue has its
  // own limit.
  size_t unsent_bytes() const;

 private:
  struct Parser;
  enum class Parsed { incomplete, refused, complete };

  bool send(const StreamEvent&) override;
  size_t queued_bytes() const override { return out_.size() - out_sent_; }
  void end() override;
  void answer(Response) override;

  bool is_within_request() const;
  bool has_sent_all() const { return out_sent_ == out_.size(); }
  void answer_pending();
  Parsed parse();
  static std::string_view framing_problem_of(const Parser&);
  unsigned check_header();  // Returns the status of a rejection; 0 if the header is valid.
  void refuse(unsigned status, std::string detail);
  void respond(Response response, bool keep, bool with_content);
  void begin_stream(const EventStream&);
  void wait_for_answer(const LaterContent&, bool keep, bool with_content);

  Hooks hooks_;
  std::unique_ptr<Parser> parser_;
  std::string pending_;     // Received but not parsed yet.
  std::string out_;         // To be sent, from `out_sent_` on.
  size_t out_sent_ = 0;     // Bytes.
  FileRange file_;          // Sent after `out_`; length 0 means none.
  size_t first_bytes_ = 0;  // Bytes of the stream's header and first events.
  unsigned answered_ = 0;   // Requests since the last call of receive().
  struct Awaited {          // The request that a later answer belongs to.
    bool keep;
    bool with_content;
  };
  std::optional<Awaited> awaited_;
  bool streaming_ = false;
  bool closing_ = false;  // The connection closes when everything has been sent.
  bool broken_ = false;   // It closes immediately.
  int64_t since_ns_;      // Start of the request being read, or last sent bytes.
  int64_t asked_ns_ = 0;  // When the request arrived, or its later answer was ready.
  // Destroyed first, because it uses the stream or the later answer, which is this object.
  std::shared_ptr<void> subscription_;
};

}  // namespace carve::http
