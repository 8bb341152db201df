// An ApiClient over HTTPS (libcurl), in Carve's loop. If the server offers HTTP/2, one connection carries all
// watches and another one everything else. When a call on a connection times out, no new calls use that
// connection, and it is closed when its other calls have ended. Otherwise all later calls would be sent over
// a dead HTTP/2 connection.
//
// A token file is read again when a minute has passed, and once after a 401. Problems and logs never contain
// the token or a body. Redirections and proxy variables (https_proxy) are ignored.
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
  size_t answer_bytes = max_answer_bytes;  // Limit for a response.
  size_t line_bytes = max_watch_line_bytes;
  ConnectionSources sources = this_machine();  // Used to read the token file.
  std::function<Nanoseconds()> now = os::monotonic_ns;
};

class CurlApiClient final : public ApiClient {
 public:
  // The first call connects. The destructor drops calls in progress without calling back. Do not destroy the
  // client in one of its callbacks.
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
