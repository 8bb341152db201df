#include "controller/kubernetes/api_caller.h"

#include <chrono>
#include <future>
#include <memory>

#include "core/invariant.h"

namespace carve::controller {

kubernetes::ApiAnswer LoopApiCaller::call(kubernetes::ApiRequest request) {
  // A call that the loop drops gets no response, so the wait is limited here as well.
  constexpr std::chrono::seconds margin(1);
  invariant(request.deadline_ns > 0, "a request for which a thread waits has a deadline");
  const auto patience = std::chrono::nanoseconds(request.deadline_ns) + margin;
  struct Pending {
    std::promise<kubernetes::ApiAnswer> answer;
    std::unique_ptr<kubernetes::ApiCall> call;  // Used on the loop.
  };
  auto pending = std::make_shared<Pending>();
  auto answered = pending->answer.get_future();
  poster_.post([this, pending, request = std::move(request)]() mutable {
    pending->call = client_.send(std::move(request), [pending](kubernetes::ApiAnswer answer) {
      pending->answer.set_value(std::move(answer));
      const auto ended = std::move(pending->call);  // Ends the cycle of ownership.
    });
  });
  if (answered.wait_for(patience) != std::future_status::ready)
    return {.problem = "the API server did not answer in time"};
  return answered.get();
}

}  // namespace carve::controller
