#include "http/conversation.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>
#include <limits>

#include "core/invariant.h"

namespace carve::http {
namespace {

namespace beast_http = boost::beast::http;

constexpr size_t max_header_bytes = 8 << 10;
constexpr size_t max_waiting_bytes = max_body_bytes + max_header_bytes;
constexpr size_t file_piece_bytes = 64 << 10;
constexpr unsigned max_pipelined_requests = 16;  // In the bytes of one call of receive().
// The size of "0", an empty line, and its own line end. Boost.Beast requires this many bytes of the last
// chunk in its buffer (1.74.0, an assertion in basic_parser::parse_chunk_header). No chunked body is complete
// with fewer bytes left.
constexpr size_t min_chunked_end_bytes = 5;

std::string header_of(const Response& response, std::optional<uint64_t> length, bool keep) {
  std::string out =
      fmt::format("HTTP/1.1 {} {}\r\nServer: carve\r\n", response.status,
                  std::string(beast_http::obsolete_reason(beast_http::int_to_status(response.status))));
  const bool bare = response.status == 204 || response.status == 304;
  if (!bare) out += fmt::format("Content-Type: {}\r\n", response.type);
  if (length && !bare) out += fmt::format("Content-Length: {}\r\n", *length);
  for (const Header& header : response.headers) out += fmt::format("{}: {}\r\n", header.name, header.value);
  return out + fmt::format("Connection: {}\r\n\r\n", keep ? "keep-alive" : "close");
}

// Each line of the data becomes a separate field. The format ends a line at CR, LF or both.
std::string frame_of(const StreamEvent& event) {
  std::string out = event.id.empty() ? "" : fmt::format("id: {}\n", event.id);
  if (!event.type.empty()) out += fmt::format("event: {}\n", event.type);
  std::string_view left = event.data;
  while (true) {
    const size_t end = left.find_first_of("\r\n");
    out += fmt::format("data: {}\n", left.substr(0, end));
    if (end == std::string_view::npos) return out + "\n";
    left.remove_prefix(end + (left.substr(end, 2) == "\r\n" ? 2 : 1));
  }
}

}  // namespace

struct Conversation::Parser {
  beast_http::request_parser<beast_http::string_body> beast;
  size_t body_limit = max_body_bytes;
  Headers headers;  // Trailers of a chunked body are ignored.
  // The parser stops after the header, so that the limit of the body can depend on it. Until then the length
  // is not limited: `body_limit(none)` rejects every length (1.74.0, basic_parser::finish_header).
  Parser() {
    beast.body_limit(std::numeric_limits<uint64_t>::max());
    beast.header_limit(max_header_bytes);
  }
  std::string_view target() const {
    const auto text = beast.get().target();
    return {text.data(), text.size()};
  }
};

std::string_view Conversation::framing_problem_of(const Parser& parser) {
  return framing_problem(parser.headers, parser.beast.get().version() >= 11);
}

Conversation::Conversation(Hooks hooks, int64_t now_ns)
    : hooks_(std::move(hooks)), parser_(std::make_unique<Parser>()), since_ns_(now_ns) {}
Conversation::~Conversation() = default;

bool Conversation::is_within_request() const { return !pending_.empty() || parser_->beast.got_some(); }

bool Conversation::is_over() const { return broken_ || (closing_ && has_sent_all() && file_.length == 0); }

std::optional<int64_t> Conversation::waits_since() const {
  const bool sends = streaming_ || awaited_ || closing_ || !has_sent_all() || file_.length > 0;
  return sends ? std::nullopt : std::optional(since_ns_);
}

std::optional<int64_t> Conversation::sends_since() const {
  const bool sends = !streaming_ && !awaited_ && (!has_sent_all() || file_.length > 0);
  return sends ? std::optional(asked_ns_) : std::nullopt;
}

size_t Conversation::held_bytes() const { return pending_.size() + parser_->beast.get().body().size(); }

size_t Conversation::unsent_bytes() const { return streaming_ ? 0 : out_.size() - out_sent_; }

void Conversation::receive(std::string_view bytes, int64_t now_ns) {
  if (streaming_ || closing_ || broken_) return;
  if (!is_within_request()) since_ns_ = now_ns;
  asked_ns_ = now_ns;
  pending_ += bytes;
  answered_ = 0;
  if (awaited_ && pending_.size() > max_waiting_bytes) broken_ = true;
  answer_pending();
}

void Conversation::answer_pending() {
  while (!closing_ && !broken_ && !awaited_ && file_.length == 0) {
    if (answered_ == max_pipelined_requests) {
      closing_ = true;  // The client sends requests without reading the responses.
      return;
    }
    if (parse() != Parsed::complete) return;
    ++answered_;
    auto& message = parser_->beast.get();
    const std::string target(parser_->target());
    const size_t question = std::min(target.find('?'), target.size());
    Request request{std::string(message.method_string()), target.substr(0, question),
                    question < target.size() ? target.substr(question + 1) : "", std::move(message.body()),
                    std::move(parser_->headers)};
    const bool keep = message.keep_alive();
    parser_ = std::make_unique<Parser>();
    respond(hooks_.handle(request), keep, request.method != "HEAD");
    if (pending_.empty()) return;
  }
}

Conversation::Parsed Conversation::parse() {
  auto& beast = parser_->beast;
  if (beast.is_header_done() && beast.chunked() && pending_.size() < min_chunked_end_bytes)
    return Parsed::incomplete;
  while (!beast.is_done()) {
    if (pending_.empty()) return Parsed::incomplete;
    const bool in_header = !beast.is_header_done();
    // The parser has consumed complete lines. It would append a folded line to the previous one.
    if (in_header && has_folded_line(pending_)) {
      refuse(400, "the request is not HTTP/1.1: a line of the header is folded");
      return Parsed::refused;
    }
    boost::system::error_code error;
    const size_t used = beast.put(boost::asio::buffer(pending_), error);
    pending_.erase(0, used);
    if (error == beast_http::error::need_more) {
      if (pending_.size() <= max_header_bytes) return Parsed::incomplete;
      error = beast_http::error::header_limit;
    }
    unsigned status = 0;
    if (error == beast_http::error::body_limit)
      status = 413;
    else if (error == beast_http::error::header_limit)
      status = 431;
    else if (error)
      status = 400;
    else if (in_header && beast.is_header_done())
      status = check_header();
    if (status == 0) continue;
    if (status == 413)
      refuse(status, fmt::format("the request body is too large; use at most {} bytes", parser_->body_limit));
    else if (status == 431)
      refuse(status, fmt::format("the request header is too large; use at most {} bytes in {} lines",
                                 max_header_bytes, max_headers));
    else
      refuse(status, "the request is not HTTP/1.1: " +
                         (error ? error.message() : std::string(framing_problem_of(*parser_))));
    return Parsed::refused;
  }
  return Parsed::complete;
}

unsigned Conversation::check_header() {
  auto& beast = parser_->beast;
  const auto& message = beast.get();
  if (static_cast<size_t>(std::distance(message.begin(), message.end())) > max_headers) return 431;
  for (const auto& field : message)
    parser_->headers.add(std::string(field.name_string()), std::string(field.value()));
  if (!framing_problem_of(*parser_).empty()) return 400;
  const auto method = message.method_string();
  const std::string_view path = parser_->target().substr(0, parser_->target().find('?'));
  if (hooks_.body_limit)
    parser_->body_limit = hooks_.body_limit(std::string_view(method.data(), method.size()), path);
  if (const auto length = beast.content_length(); length && *length > parser_->body_limit) return 413;
  beast.body_limit(parser_->body_limit);  // For a chunked body, which has no length.
  beast.eager(true);
  return 0;
}

void Conversation::refuse(unsigned status, std::string detail) {
  respond(hooks_.refuse(status, std::move(detail)), false, true);
}

void Conversation::respond(Response response, bool keep, bool with_content) {
  keep = keep && !response.closes;
  if (const auto* later = std::get_if<LaterContent>(&response.content))
    return wait_for_answer(*later, keep, with_content);
  if (const auto* stream = std::get_if<EventStream>(&response.content)) {
    response.type = "text/event-stream";
    response.headers.push_back({"Cache-Control", "no-store"});
    out_ += header_of(response, std::nullopt, false);  // The content ends when the connection closes.
    if (with_content) return begin_stream(*stream);
    closing_ = true;
  } else if (auto* file = std::get_if<FileRange>(&response.content)) {
    out_ += header_of(response, file->length, keep);
    if (with_content) file_ = std::move(*file);
  } else {
    const auto& body = std::get<std::string>(response.content);
    out_ += header_of(response, body.size(), keep);
    if (with_content && response.status != 204 && response.status != 304) out_ += body;
  }
  if (!keep) closing_ = true;
}

void Conversation::begin_stream(const EventStream& stream) {
  streaming_ = true;
  pending_.clear();
  for (const StreamEvent& event : stream.first) out_ += frame_of(event);
  first_bytes_ = out_.size();
  if (stream.subscribe) subscription_ = stream.subscribe(*this);
}

// The answer may arrive during this call.
void Conversation::wait_for_answer(const LaterContent& later, bool keep, bool with_content) {
  awaited_ = {keep, with_content};
  subscription_.reset();
  auto subscription = later.begin(*this);
  subscription_ = std::move(subscription);
}

void Conversation::answer(Response response) {
  invariant(awaited_.has_value(), "a later answer arrives only once");
  const Awaited awaited = *awaited_;
  asked_ns_ = since_ns_;  // The peer was not slow until now, because tick() has kept the time.
  awaited_.reset();
  respond(std::move(response), awaited.keep, awaited.with_content);
  if (hooks_.wake) hooks_.wake();
}

bool Conversation::send(const StreamEvent& event) {
  if (closing_ || broken_) return false;
  const std::string frame = frame_of(event);
  if (out_.size() - out_sent_ + frame.size() > first_bytes_ + hooks_.queue_bytes)
    broken_ = true;
  else
    out_ += frame;
  if (hooks_.wake) hooks_.wake();
  return !broken_;
}

void Conversation::end() {
  closing_ = true;
  if (hooks_.wake) hooks_.wake();
}

std::string_view Conversation::unsent() {
  if (broken_) return {};
  if (has_sent_all() && file_.length > 0) {
    out_.resize(std::min<uint64_t>(file_.length, file_piece_bytes));
    out_sent_ = 0;
    const ssize_t read = pread(file_.file.get(), out_.data(), out_.size(), static_cast<off_t>(file_.offset));
    if (read <= 0) {  // The file is shorter than announced; closing the connection signals this.
      broken_ = true;
      return {};
    }
    out_.resize(static_cast<size_t>(read));
    file_.offset += out_.size();
    file_.length -= out_.size();
  }
  return std::string_view(out_).substr(out_sent_);
}

void Conversation::sent(size_t bytes, int64_t now_ns) {
  out_sent_ += bytes;
  since_ns_ = now_ns;
  if (!has_sent_all()) {
    if (out_sent_ < out_.size() / 2) return;
    out_.erase(0, out_sent_);  // Moves no more bytes than were sent.
    out_sent_ = 0;
    return;
  }
  out_.clear();
  out_sent_ = 0;
  first_bytes_ = 0;
  if (!streaming_ && !pending_.empty()) answer_pending();
}

void Conversation::tick(int64_t now_ns) {
  if (streaming_ && !closing_) {
    if (!has_sent_all() || now_ns - since_ns_ < comment_interval_ns) return;
    out_ += ":\n\n";
    since_ns_ = now_ns;
    return;
  }
  if (awaited_) {
    since_ns_ = now_ns;
    return;
  }
  const bool busy = is_within_request() || !has_sent_all() || file_.length > 0;
  if (now_ns - since_ns_ > (busy ? request_patience_ns : idle_patience_ns)) broken_ = true;
}

}  // namespace carve::http
