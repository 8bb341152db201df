// Responses that are produced in a thread and sent later (os/workers.h).
#pragma once

#include <functional>
#include <string>

#include "http/message.h"
#include "os/workers.h"

namespace carve::controller {

using Answer = std::function<http::Response()>;

// Returns a response that is sent from the loop once `work`, which runs in a thread, has returned its result.
// The request is rejected if the work takes too long or too many tasks are waiting. `workers` must outlive
// the response.
http::Response answer_later(os::Workers& workers, const std::string& key, std::function<Answer()> work);

}  // namespace carve::controller
