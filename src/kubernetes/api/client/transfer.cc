#include "kubernetes/api/client/transfer.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include "kubernetes/api/answers.h"

namespace carve::kubernetes {
namespace {

constexpr long connect_ms = 10'000;
constexpr unsigned unacknowledged_ms = 30'000;  // A connection without acknowledgments for this long is dead.
constexpr long idle_seconds = 15, probe_seconds = 5;
constexpr long buffer_bytes = 128 << 10;
constexpr size_t max_problem_bytes = 500;

curl_blob blob_of(const std::string& text) {
  return {.data = const_cast<char*>(text.data()), .len = text.size(), .flags = CURL_BLOB_COPY};
}

}  // namespace

bool Transfer::start(const std::shared_ptr<CurlLane>& lane, const Connection& connection,
                     const std::string& token, const std::string& user_agent, Nanoseconds patience_ns) {
  stop();
  handle_ = curl().easy_init();
  if (handle_ == nullptr) return false;
  received_.clear();
  set_options(connection, user_agent);
  set_request(connection);
  if (!token.empty()) add_header("Authorization: Bearer " + token);
  curl().easy_setopt(handle_, CURLOPT_HTTPHEADER, headers_);
  if (patience_ns > 0)
    curl().easy_setopt(handle_, CURLOPT_TIMEOUT_MS, static_cast<long>((patience_ns + 999'999) / 1'000'000));
  if (!lane->add(handle_)) {
    stop();
    return false;
  }
  lane_ = lane;
  return true;
}

void Transfer::stop() {
  if (handle_ == nullptr) return;
  if (lane_) lane_->remove(handle_);
  curl().easy_cleanup(handle_);
  curl().slist_free_all(headers_);
  handle_ = nullptr;
  headers_ = nullptr;
  lane_.reset();
}

void Transfer::set_options(const Connection& connection, const std::string& user_agent) {
  const auto set = [this](CURLoption option, auto value) { curl().easy_setopt(handle_, option, value); };
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_ERRORBUFFER, error_);
  set(CURLOPT_WRITEFUNCTION, &Transfer::receive);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_SOCKOPTFUNCTION, &Transfer::set_socket_options);
  set(CURLOPT_USERAGENT, user_agent.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_PROXY, "");
  set(CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
  set(CURLOPT_BUFFERSIZE, buffer_bytes);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  // Waits until libcurl knows whether a new connection can carry several transfers. A connection without TLS
  // never can here, but libcurl 7.88 learns that only at the end of the first response, which takes minutes
  // for a watch.
  set(CURLOPT_PIPEWAIT, connection.server.starts_with("https://") ? 1L : 0L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, idle_seconds);
  set(CURLOPT_TCP_KEEPINTVL, probe_seconds);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  const auto set_blob = [this](CURLoption option, const std::string& text) {
    const curl_blob blob = blob_of(text);
    curl().easy_setopt(handle_, option, &blob);
  };
  if (!connection.key_pin.empty()) {
    // libcurl checks the key at the end of the handshake even if it does not verify the certificate.
    set(CURLOPT_PINNEDPUBLICKEY, connection.key_pin.c_str());
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
    set(CURLOPT_PROTOCOLS_STR, "https");
  }
  if (!connection.ca_pem.empty()) {
    // Without this option, libcurl also trusts the machine's certificates.
    set(CURLOPT_CAPATH, static_cast<char*>(nullptr));
    set_blob(CURLOPT_CAINFO_BLOB, connection.ca_pem);
  }
  if (!connection.certificate_pem.empty()) {
    set_blob(CURLOPT_SSLCERT_BLOB, connection.certificate_pem);
    set_blob(CURLOPT_SSLKEY_BLOB, connection.key_pem);
  }
}

void Transfer::set_request(const Connection& connection) {
  url_ = connection.server + request_.target;
  curl().easy_setopt(handle_, CURLOPT_URL, url_.c_str());
  curl().easy_setopt(handle_, CURLOPT_PATH_AS_IS, 1L);
  add_header("Accept: " + request_.accept);
  if (!request_.body.empty()) {
    curl().easy_setopt(handle_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    curl().easy_setopt(handle_, CURLOPT_POSTFIELDS, request_.body.data());
    add_header("Content-Type: " + request_.content_type);
    add_header("Expect:");  // Sends the body without waiting for 100 Continue.
  }
  curl().easy_setopt(handle_, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
}

void Transfer::add_header(const std::string& line) {
  if (curl_slist* const longer = curl().slist_append(headers_, line.c_str())) headers_ = longer;
}

int Transfer::set_socket_options(void*, curl_socket_t fd, curlsocktype) {
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
  return CURL_SOCKOPT_OK;
}

unsigned Transfer::status() const {
  long out = 0;
  if (handle_ != nullptr) curl().easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &out);
  return static_cast<unsigned>(out);
}

bool Transfer::has_been_sent() const {
  long bytes = 0;
  if (handle_ != nullptr) curl().easy_getinfo(handle_, CURLINFO_REQUEST_SIZE, &bytes);
  return bytes > 0;
}

size_t Transfer::receive(char* bytes, size_t, size_t size, void* transfer) {
  auto& self = *static_cast<Transfer*>(transfer);
  const bool has_lines = self.is_watch_ && self.status() == 200;
  const size_t limit = has_lines ? self.limits_.line_bytes : self.limits_.answer_bytes;
  size_t begin = has_lines ? self.received_.rfind('\n') + 1 : 0;  // npos + 1 is 0.
  self.received_.append(bytes, size);
  for (size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = has_lines ? self.received_.find('\n', begin) : std::string::npos;
    if (std::min(end, self.received_.size()) - begin <= limit) continue;
    self.received_.resize(begin);
    self.excess_ = fmt::format("{} has more than {} bytes", has_lines ? "a line" : "the response", limit);
    return 0;  // Ends the transfer.
  }
  return size;
}

void Transfer::deliver_lines() {
  if (!is_watch_ || status() != 200) return;
  const auto call = lines_.line;  // A copy, because the callback may end this call.
  size_t begin = 0;
  for (size_t end; is_running() && (end = received_.find('\n', begin)) != std::string::npos; begin = end + 1)
    if (end > begin) call(std::string_view(received_).substr(begin, end - begin));
  received_.erase(0, begin);
}

ApiAnswer Transfer::answer(CURLcode code) const {
  ApiAnswer out;
  curl_off_t retry_after = 0;
  curl().easy_getinfo(handle_, CURLINFO_RETRY_AFTER, &retry_after);
  out.retry_after_seconds = static_cast<unsigned>(std::clamp<curl_off_t>(retry_after, 0, 86'400));
  const bool is_whole = code == CURLE_OK && !(is_watch_ && status() == 200 && !received_.empty());
  if (!is_whole) {
    const char* const why = error_[0] != '\0' ? error_ : curl().easy_strerror(code);
    out.problem = !excess_.empty()   ? excess_
                  : code == CURLE_OK ? std::string("the connection was lost in the middle of a line")
                                     : std::string(why).substr(0, max_problem_bytes);
    out.may_have_happened = has_been_sent();
    return out;
  }
  out.status = status();
  out.body = received_;
  if (out.is_success()) return out;
  out.may_have_happened = !refuses_write(out.status);
  out.problem =
      fmt::format("status {}: {}", out.status, read_status(out.body).message.substr(0, max_problem_bytes));
  return out;
}

}  // namespace carve::kubernetes
