// One connection and the transfers over it: libcurl's multi interface in Carve's loop. With HTTP/1.1 each
// concurrent transfer has its own connection.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "kubernetes/api/client/libcurl.h"
#include "os/fd.h"
#include "os/loop.h"

namespace carve::kubernetes {

class CurlLane : public std::enable_shared_from_this<CurlLane> {
 public:
  // Calls `acted` after libcurl has sent or received bytes, but never from inside libcurl, so that `acted`
  // may add and remove transfers.
  static std::shared_ptr<CurlLane> make(os::Loop&, std::function<void(CurlLane&)> acted);
  ~CurlLane();
  CurlLane(const CurlLane&) = delete;
  CurlLane& operator=(const CurlLane&) = delete;

  // Adds a transfer. Returns false if memory is exhausted.
  bool add(CURL* transfer) { return curl().multi_add_handle(multi_, transfer) == CURLM_OK; }
  void remove(CURL* transfer) { curl().multi_remove_handle(multi_, transfer); }
  // Calls `act` for each transfer that has finished since the last call.
  void take_ended(const std::function<void(CURL*, CURLcode)>& act);

 private:
  CurlLane(os::Loop&, std::function<void(CurlLane&)> acted);
  static int set_socket(CURL*, curl_socket_t, int what, void* lane, void*);
  static int set_timer(CURLM*, long ms, void* lane);
  void watch(int fd, uint32_t events);
  void act(int fd, int events);

  os::Loop& loop_;
  const std::function<void(CurlLane&)> acted_;
  CURLM* const multi_;
  const os::Fd timer_;
  std::set<int> watched_;
};

}  // namespace carve::kubernetes
