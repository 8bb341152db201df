// Requests to the API server by threads that wait for the response.
#pragma once

#include "kubernetes/api/api_client.h"
#include "os/loop_poster.h"

namespace carve::controller {

class ApiCaller {
 public:
  virtual ~ApiCaller() = default;
  // Sends the request and waits for the response, at most until the request's deadline. The response has status 0
  // if there was none. May be called in any thread except that of the client.
  virtual kubernetes::ApiAnswer call(kubernetes::ApiRequest) = 0;
};

// Calls a client that runs in a loop of another thread. The client may be destroyed after the loop has ended.
class LoopApiCaller final : public ApiCaller {
 public:
  LoopApiCaller(os::LoopPoster poster, kubernetes::ApiClient& client)
      : poster_(std::move(poster)), client_(client) {}
  kubernetes::ApiAnswer call(kubernetes::ApiRequest) override;

 private:
  const os::LoopPoster poster_;
  kubernetes::ApiClient& client_;
};

}  // namespace carve::controller
