// An ApiClient over HTTPS (libcurl), in our loop. HTTP/2 is spoken if the server offers it: then one
// connection carries all watches and one the rest. A connection of which a call got no answer in time is
// left, and closed when its other calls have ended; a dead one of HTTP/2 would take all later calls.
//
// A token from a file is read again when it is a minute old, and once after a 401. Neither it nor a body is
// in a problem or a log. Redirections and the variables of proxies (https_proxy) are not followed.
#pragma once

#include <memory>

#include "kube/api_client.h"
#include "kube/client/connection.h"
#include "os/clock.h"
#include "os/loop.h"

namespace carve::kube {

inline constexpr Nanoseconds token_age_ns = 60 * second_ns;

struct CurlClientSettings {
  std::string user_agent = "carve";
  size_t answer_bytes = max_answer_bytes;  // Of an answer.
  size_t line_bytes = max_watch_line_bytes;
  ConnectionSources sources = this_machine();  // For the file of the token.
  std::function<Nanoseconds()> now = os::monotonic_ns;
};

class CurlApiClient final : public ApiClient {
 public:
  // Connects with the first call. Calls that are left when it is destroyed are not answered; it is not
  // destroyed in a callback of its own.
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

}  // namespace carve::kube
