#include "kubernetes/api/client/curl_lane.h"

#include <sys/timerfd.h>

#include <algorithm>

namespace carve::kubernetes {
namespace {

// With HTTP/2 one connection is used; more are opened only for a server that supports only HTTP/1.1.
constexpr long max_lane_connections = 16;
// libcurl opens another connection above its default of 100 streams. The server has its own limit; Go's
// default is 250.
constexpr long max_connection_streams = 1000;

}  // namespace

std::shared_ptr<CurlLane> CurlLane::make(os::Loop& loop, std::function<void(CurlLane&)> acted) {
  const std::shared_ptr<CurlLane> out(new CurlLane(loop, std::move(acted)));
  out->loop_.watch(out->timer_.get(), EPOLLIN, [weak = out->weak_from_this()](uint32_t) {
    const auto lane = weak.lock();
    if (!lane) return;
    uint64_t expirations = 0;
    if (read(lane->timer_.get(), &expirations, sizeof expirations) == sizeof expirations)
      lane->act(CURL_SOCKET_TIMEOUT, 0);
  });
  return out;
}

CurlLane::CurlLane(os::Loop& loop, std::function<void(CurlLane&)> acted)
    : loop_(loop),
      acted_(std::move(acted)),
      multi_(curl().multi_init()),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  curl().multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlLane::set_socket);
  curl().multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl().multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlLane::set_timer);
  curl().multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl().multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, max_lane_connections);
  curl().multi_setopt(multi_, CURLMOPT_MAX_CONCURRENT_STREAMS, max_connection_streams);
}

CurlLane::~CurlLane() {
  curl().multi_cleanup(multi_);
  for (const int fd : watched_) loop_.forget(fd);
  loop_.forget(timer_.get());
}

int CurlLane::set_socket(CURL*, curl_socket_t fd, int what, void* lane, void*) {
  auto& self = *static_cast<CurlLane*>(lane);
  switch (what) {
    case CURL_POLL_IN: self.watch(fd, EPOLLIN); break;
    case CURL_POLL_OUT: self.watch(fd, EPOLLOUT); break;
    case CURL_POLL_INOUT: self.watch(fd, EPOLLIN | EPOLLOUT); break;
    default:
      self.watched_.erase(fd);
      self.loop_.forget(fd);
      break;
  }
  return 0;
}

void CurlLane::watch(int fd, uint32_t events) {
  if (!watched_.insert(fd).second) return loop_.watch_for(fd, events);
  loop_.watch(fd, events, [weak = weak_from_this(), fd](uint32_t seen) {
    const auto lane = weak.lock();
    if (!lane) return;
    int what = 0;
    if ((seen & (EPOLLIN | EPOLLHUP)) != 0) what |= CURL_CSELECT_IN;
    if ((seen & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
    if ((seen & EPOLLERR) != 0) what |= CURL_CSELECT_ERR;
    lane->act(fd, what);
  });
}

int CurlLane::set_timer(CURLM*, long ms, void* lane) {
  itimerspec at{};  // Zero turns the timer off.
  if (ms >= 0) {
    at.it_value.tv_sec = ms / 1000;
    at.it_value.tv_nsec = std::max(ms % 1000 * 1'000'000, ms == 0 ? 1L : 0L);
  }
  return timerfd_settime(static_cast<CurlLane*>(lane)->timer_.get(), 0, &at, nullptr);
}

void CurlLane::act(int fd, int events) {
  int running = 0;
  curl().multi_socket_action(multi_, fd, events, &running);
  acted_(*this);
}

void CurlLane::take_ended(const std::function<void(CURL*, CURLcode)>& act) {
  int left = 0;
  while (const CURLMsg* message = curl().multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* const transfer = message->easy_handle;  // Copied, because removing the transfer frees the message.
    act(transfer, message->data.result);
  }
}

}  // namespace carve::kubernetes
