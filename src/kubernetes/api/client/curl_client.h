// An ApiClient over HTTPS (libcurl), in Carve's loop. It uses HTTP/2 if the server offers it: then one
// connection carries all watches and another one everything else. When a call on a connection times out, no
// new calls use that connection, and it is closed when its other calls have ended. Otherwise a dead HTTP/2
// connection would take all later calls.
//
// A token from a file is read again when it is a minute old, and once after a 401. Problems and logs never
// contain the token or a body. Redirections and proxy variables (https_proxy) are ignored.
#pragma once

#include <memory>

#include "kubernetes/api/api_client.h"
#include "kubernetes/api/client/connection.h"
#include "os/clock.h"
#include "os/loop.h"

namespace carve::kubernetes {

inline constexpr Nanoseconds token_age_ns = 60 * second_ns;

struct CurlClientSettings {
  std::string user_agent = "carve";
  size_t answer_bytes = max_answer_bytes;  // Limit of a response.
  size_t line_bytes = max_watch_line_bytes;
  ConnectionSources sources = this_machine();  // To read the token's file.
  std::function<Nanoseconds()> now = os::monotonic_ns;
};

class CurlApiClient final : public ApiClient {
 public:
  // Connects on the first call. Calls in progress are dropped without a callback on destruction. Do not
  // destroy the client in one of its callbacks.
  CurlApiClient(os::Loop&, Connection, CurlClientSettings = {});
  ~CurlApiClient() override;

  std::unique_ptr<ApiCall> send(ApiRequest, Answered) override;
  std::unique_ptr<ApiCall> watch(ApiRequest, Lines) override;
  std::unique_ptr<ApiCall> after(Nanoseconds, std::function<void()>) override;
  Nanoseconds now() const override;

 private:
  class State;
  std::unique_ptr<ApiCall> begin(ApiRequest, Lines, bool is_watch);
  std::shared_ptr<State> state_;
};

}  // namespace carve::kubernetes
