// One request over libcurl and the data received for it.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>
#include <vector>

#include "kubernetes/api/api_client.h"
#include "kubernetes/api/client/connection.h"
#include "kubernetes/api/client/curl_lane.h"

namespace carve::kubernetes {

class Transfer {
 public:
  struct Limits {
    size_t answer_bytes, line_bytes;
  };

  Transfer(ApiRequest request, ApiClient::Lines lines, bool is_watch, Limits limits)
      : request_(std::move(request)), lines_(std::move(lines)), is_watch_(is_watch), limits_(limits) {}
  ~Transfer() { stop(); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Starts the request, or restarts it. `patience_ns` limits the time until the response; 0 means no limit.
  // Returns false if memory is exhausted.
  bool start(const std::shared_ptr<CurlLane>&, const Connection&, const std::string& token,
             const std::string& user_agent, Nanoseconds patience_ns);
  void stop();  // Nothing is received afterwards.

  // Calls back with each complete line of a watch. A callback may call stop().
  void deliver_lines();
  // Returns the response of a transfer that libcurl ended with this code.
  ApiAnswer answer(CURLcode) const;
  ApiClient::Answered take_callback() { return std::move(lines_.ended); }

  CURL* handle() const { return handle_; }
  const std::shared_ptr<CurlLane>& lane() const { return lane_; }
  const ApiRequest& request() const { return request_; }
  bool is_watch() const { return is_watch_; }
  bool is_running() const { return handle_ != nullptr; }
  bool has_been_sent() const;

  bool has_retried = false;  // With another token.
  Nanoseconds due = 0;       // 0 if there is no deadline.

 private:
  static size_t receive(char* bytes, size_t, size_t size, void* transfer);
  static int set_socket_options(void*, curl_socket_t fd, curlsocktype);
  void set_options(const Connection&, const std::string& user_agent);
  void set_request(const Connection&);
  void add_header(const std::string& line);
  unsigned status() const;

  const ApiRequest request_;
  ApiClient::Lines lines_;
  const bool is_watch_;
  const Limits limits_;
  CURL* handle_ = nullptr;
  curl_slist* headers_ = nullptr;
  std::shared_ptr<CurlLane> lane_;
  std::string url_;
  std::string received_;  // The body, or lines that are not delivered yet.
  std::string excess_;    // Why the rest is not received; empty until a limit is exceeded.
  char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace carve::kubernetes
