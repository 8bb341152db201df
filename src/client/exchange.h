// One HTTP exchange and one watch of an event stream, for any Asio stream: a unix socket or a TLS connection. Only the
// clients' source files include this header, because it includes Boost.Beast.
#pragma once

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "client/client.h"
#include "client/event_stream.h"
#include "wire/api/warning.h"

namespace carve::client {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

using StringRequest = http::request<http::string_body>;
using Parser = http::response_parser<http::dynamic_body>;

inline constexpr auto watch_patience =
    std::chrono::seconds(45);  // Three times the interval of the comments that a server sends.
inline constexpr size_t max_response_bytes = 16 << 20;

inline StringRequest request_of(std::string_view method, std::string_view target, std::string_view host) {
  StringRequest request;
  request.method_string(beast::string_view(method.data(), method.size()));
  request.target(beast::string_view(target.data(), target.size()));
  request.version(11);
  request.set(http::field::host, beast::string_view(host.data(), host.size()));
  request.set(http::field::connection, "close");
  return request;
}

inline void set_body(StringRequest& request, const std::string& body, const RequestHeaders& headers) {
  if (!body.empty()) request.set(http::field::content_type, "application/json");
  if (!headers.accept.empty())
    request.set(http::field::accept, beast::string_view(headers.accept.data(), headers.accept.size()));
  if (!headers.version.empty())
    request.set(http::field::if_match, beast::string_view(fmt::format("\"{}\"", headers.version)));
  request.body() = body;
  request.prepare_payload();
}

// Sends and receives. Each step begins only if the previous step succeeded.
template <class Stream>
boost::system::error_code exchange(asio::io_context& context, Stream& stream, const StringRequest& request,
                                   std::chrono::steady_clock::time_point deadline, Parser& response) {
  beast::flat_buffer buffer;
  boost::system::error_code result;
  const auto received = [&](boost::system::error_code error, size_t) { result = error; };
  const auto sent = [&](boost::system::error_code error, size_t) {
    result = error;
    if (!error) http::async_read(stream, buffer, response, received);
  };
  beast::get_lowest_layer(stream).expires_at(deadline);
  http::async_write(stream, request, sent);
  context.restart();
  context.run();
  return result;
}

inline RawAnswer answer_of(Parser& response) {
  const auto type = response.get()[http::field::content_type];
  RawAnswer out{.status = response.get().result_int(),
                .type = std::string(type.data(), type.size()),
                .body = beast::buffers_to_string(response.get().body().data()),
                .warnings = {}};
  const auto [first, last] = response.get().equal_range(http::field::warning);
  for (auto line = first; line != last; ++line)
    if (auto text = api::warning_text({line->value().data(), line->value().size()}))
      out.warnings.push_back(std::move(*text));
  return out;
}

// One watch: sends the request, and reads until the stream ends or nothing arrives for too long.
template <class Stream>
struct Watch {
  asio::io_context& context;
  Stream& stream;
  const StringRequest& request;
  const std::function<void(const StreamEvent&)>& act;
  std::chrono::seconds patience;
  beast::flat_buffer buffer = {};
  Parser response = {};
  EventStreamReader reader = {};
  bool opened = false;
  boost::system::error_code result = {};

  void run() {
    response.body_limit(max_response_bytes);
    beast::get_lowest_layer(stream).expires_after(patience);
    http::async_write(stream, request, [this](boost::system::error_code failed, size_t) {
      result = failed;
      if (!failed) read_some();
    });
    context.restart();
    context.run();
  }
  void read_some() {
    http::async_read_some(stream, buffer, response, [this](boost::system::error_code error, size_t) {
      result = error;
      if (!error) received();
    });
  }
  void received() {
    const bool begins = !opened && response.get().result_int() == 200 &&
                        response.get()[http::field::content_type] == "text/event-stream";
    if (begins) response.body_limit(std::numeric_limits<uint64_t>::max());
    opened = opened || begins;
    if (opened) {
      auto& body = response.get().body();
      const std::string bytes = beast::buffers_to_string(body.data());
      body.consume(body.size());
      if (!reader.read(bytes, act)) {
        result = http::error::body_limit;
        return;
      }
    }
    if (response.is_done()) return;
    beast::get_lowest_layer(stream).expires_after(opened ? watch_patience : patience);
    read_some();
  }
};

}  // namespace carve::client
