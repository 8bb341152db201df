// Responses that are sent when a thread has made them (os/workers.h).
#pragma once

#include <functional>
#include <string>

#include "http/message.h"
#include "os/workers.h"

namespace carve::controller {

using Answer = std::function<http::Response()>;

// Returns a response that is sent from the loop, made of the result of `work`, which runs in a thread. The
// request is rejected if the work takes too long or if too many tasks wait. `workers` must outlive the
// response.
http::Response answer_later(os::Workers& workers, const std::string& key, std::function<Answer()> work);

}  // namespace carve::controller
